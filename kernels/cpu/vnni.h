// vpdpbusd, for kernels that are compiled for AVX-512 with VNNI whatever the compiler's flags are.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#define ARN_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define ARN_VNNI_INLINE ARN_VNNI __attribute__((always_inline)) inline

namespace arn::cpu::vnni {

// sum += the products of a's unsigned and b's signed bytes, four to a lane. GCC 12 copies the sum
// around its own intrinsic of this instruction, which costs the loops a third of their speed.
ARN_VNNI_INLINE void AddProducts(__m512i a, __m512i b, __m512i* sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

}  // namespace arn::cpu::vnni
#endif
