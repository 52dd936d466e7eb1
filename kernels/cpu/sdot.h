// sdot for kernels compiled for ARMv8 with dot products, whatever the compiler flags.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

// Lets the assembler take sdot in a file that is compiled for less.
#if defined(__ARM_FEATURE_DOTPROD)
#define ARN_WITH_SDOT ""
#else
#define ARN_WITH_SDOT ".arch armv8.2-a+dotprod\n\t"
#endif

namespace arn::cpu {

// sum += dot products of a's and b's signed bytes, four per lane. Inline assembly, because only the
// assembler needs to know the instruction, so this also inlines into code for plain NEON.
// REQUIRES: the caller has checked the CPU for dot products.
__attribute__((always_inline)) inline void AddSignedProducts(int8x16_t a, int8x16_t b,
                                                             int32x4_t* sum) {
  asm(ARN_WITH_SDOT "sdot %0.4s, %1.16b, %2.16b" : "+w"(*sum) : "w"(a), "w"(b));
}

}  // namespace arn::cpu
#endif
