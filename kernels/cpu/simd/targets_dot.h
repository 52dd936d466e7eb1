// The instruction sets of kernels that live off integer dot products: AVX-512 with VNNI (Highway's
// AVX3_DL: Ice Lake, Zen 4 and later), and what every compiler's flags allow, where such a kernel
// says that there is none. Included instead of targets.h, before any header of Highway's.
#pragma once

#define HWY_DISABLED_TARGETS                                                                 \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | \
   HWY_NEON_BF16 | HWY_NEON | HWY_ALL_SVE)
