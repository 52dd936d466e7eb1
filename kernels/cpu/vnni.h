// vpdpbusd for kernels compiled for AVX-512 with VNNI, whatever the compiler flags.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#define ARN_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define ARN_VNNI_INLINE ARN_VNNI __attribute__((always_inline)) inline

namespace arn::cpu::vnni {

// sum += dot products of a's unsigned and b's signed bytes, four per lane. Inline assembly, because
// GCC 12 copies the accumulator around its own intrinsic, which makes the loops a third slower.
// Only the assembler needs VNNI support, so this also inlines into AVX-512 code without it.
// REQUIRES: the caller has checked the CPU for VNNI.
__attribute__((target("avx512f"), always_inline)) inline void AddProducts(__m512i a, __m512i b,
                                                                          __m512i* sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

// The same with b's four bytes in every lane.
__attribute__((target("avx512f"), always_inline)) inline void AddProducts(__m512i a,
                                                                          const int8_t* b,
                                                                          __m512i* sum) {
  using Four = const int8_t[4];
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(a), "m"(*reinterpret_cast<Four*>(b)));
}

}  // namespace arn::cpu::vnni
#endif
