// Instruction sets for which the SIMD kernels are compiled. Must be included before any Highway
// header. x86-64: SSE2, SSE4, AVX2, AVX-512. ARMv8: NEON. The disabled ones would only add code
// size.
//
// The whole program must use one set (lint: simd_targets): Highway's dispatch function is inline
// and depends on the set. Without optimisation the linker keeps one copy, which would index the
// table of one set with the mask of another.
#pragma once

#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | HWY_NEON_BF16 | \
   HWY_NEON | HWY_ALL_SVE)
