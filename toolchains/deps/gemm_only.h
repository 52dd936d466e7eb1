// Included before XNNPACK's gemm-config.c, a table of kernels for sixteen kinds of matrix products.
// Arenite uses three of them. What fills the other rows is never called; without the calls the
// compiler drops it, and the micro-kernels that only it names need not be built.
#include "xnnpack/config.h"
#include "xnnpack/init-once.h"

// The table names two kernels for each tile: one for matrix products and one for convolutions
// ("igemm"). Without their names the latter are not linked.
#define xnn_init_hmp_igemm_ukernel(kernel) ((struct xnn_hmp_igemm_ukernel){{0}})
#define xnn_init_hmp_dqigemm_ukernel(kernel) ((struct xnn_hmp_dqigemm_ukernel){{0}})

#undef XNN_INIT_ONCE
#define XNN_INIT_ONCE(name) ARN_FILL_##name
#define ARN_FILL(name) pthread_once(&name##_guard, &init_##name##_config)

#define ARN_FILL_f32_gemm ARN_FILL(f32_gemm)
#define ARN_FILL_qd8_f32_qc8w_gemm ARN_FILL(qd8_f32_qc8w_gemm)
#define ARN_FILL_qd8_f32_qb4w_gemm ARN_FILL(qd8_f32_qb4w_gemm)

#define ARN_FILL_f16_gemm (void)0
#define ARN_FILL_f32_gemm_nr2 (void)0
#define ARN_FILL_f32_qc4w_gemm (void)0
#define ARN_FILL_f32_qc8w_gemm (void)0
#define ARN_FILL_pf32_gemm (void)0
#define ARN_FILL_qd8_f16_qb4w_gemm (void)0
#define ARN_FILL_qd8_f16_qc4w_gemm (void)0
#define ARN_FILL_qd8_f16_qc8w_gemm (void)0
#define ARN_FILL_qd8_f32_qc4w_gemm (void)0
#define ARN_FILL_qp8_f32_qc4w_gemm (void)0
#define ARN_FILL_qp8_f32_qb4w_gemm (void)0
#define ARN_FILL_qs8_qc8w_gemm (void)0
#define ARN_FILL_qu8_gemm (void)0
