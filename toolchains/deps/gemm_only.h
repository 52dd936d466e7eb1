// Included before XNNPACK's gemm-config.c, a table of kernels for sixteen types of matmul, of which
// Arenite uses three. The functions that fill the other rows are never called, so the compiler
// drops them, and the micro-kernels that only they reference need not be built.
#include "xnnpack/config.h"
#include "xnnpack/init-once.h"

// The table names two kernels per tile: one for matmuls and one for convolutions ("igemm").
// Removing the references keeps the latter from being linked.
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
