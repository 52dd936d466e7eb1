// Included before XNNPACK's gemm-config.c. Its table names two kernels for each tile: one for
// matrix products and one for convolutions ("igemm"). Without their names the latter are not
// linked.
#include "xnnpack/config.h"

#define xnn_init_hmp_igemm_ukernel(kernel) ((struct xnn_hmp_igemm_ukernel){{0}})
#define xnn_init_hmp_dqigemm_ukernel(kernel) ((struct xnn_hmp_dqigemm_ukernel){{0}})
