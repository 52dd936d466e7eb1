// The instruction sets that the SIMD kernels are compiled for; included before any header of
// Highway's. On x86-64: SSE2, SSE4, AVX2, AVX-512. On ARMv8: NEON. The ones left out would bring
// these kernels nothing but code size.
#pragma once

#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | HWY_NEON_BF16 | \
   HWY_NEON | HWY_ALL_SVE)
