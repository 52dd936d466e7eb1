// Included before XNNPACK's gemm-config.c, a table of kernels for sixteen types of matmul, of which
// Arenite uses three. The functions that fill the other rows are never called, so the compiler
// drops them, and the micro-kernels that only they reference need not be built.
#include "xnnpack/config.h"
#include "xnnpack/init-once.h"

// The table names two kernels per tile: one for matmuls and one for convolutions ("igemm").
// Removing the references keeps the latter from being linked.
#define xnn_init_hmp_igemm_ukernel(kernel) ((struct xnn_hmp_igemm_ukernel){{0}})
#define xnn_init_hmp_dqigemm_ukernel(kernel) ((struct xnn_hmp_dqigemm_ukernel){{0}})

// It names the packers of weights as well. Bundles hold packed matrices, by kernels/pack.
#include "xnnpack/pack.h"
#include "xnnpack/packw.h"
#define xnn_pack_f32_gemm_gio_w NULL
#define xnn_pack_qs8_gemm_gio_w NULL
#define xnn_pack_qs8_gemm_goi_w NULL
#define xnn_pack_qs8_qb4w_gemm_goi_w NULL
#define xnn_pack_qs8_weights_and_biases NULL
#define xnn_packed_stride_qs8_weights_and_biases NULL
#define xnn_qs8_packw_gemm_goi_ukernel_x16c8__avx256vnni_prfm NULL
#define xnn_qs8_packw_gemm_goi_ukernel_x16c8__scalar NULL
#define xnn_qs8_packw_gemm_goi_ukernel_x64c4__scalar NULL
#define xnn_qs8_packw_gemm_goi_ukernel_x8c8__avxvnni_prfm NULL
#define xnn_x32_packw_gemm_goi_ukernel_x16__avx_u4 NULL
#define xnn_x32_packw_gemm_goi_ukernel_x16s4__avx_u4 NULL
#define xnn_x32_packw_gemm_goi_ukernel_x32__avx512f_u4_prfm NULL
#define xnn_x32_packw_gemm_goi_ukernel_x4__scalar_float_u4 NULL
#define xnn_x32_packw_gemm_goi_ukernel_x4v__rvv_u8 NULL
#define xnn_x32_packw_gemm_goi_ukernel_x8__neon_ld4lane_u4_prfm NULL
#define xnn_x32_packw_gemm_goi_ukernel_x8__sse2_u4 NULL
#define xnn_x32_packw_gemm_goi_ukernel_x8s4__neon_ld4lane_u4_prfm NULL

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
