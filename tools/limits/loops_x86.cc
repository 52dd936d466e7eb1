#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include "tools/limits/loops.h"

// Compiles a function for its instruction set, whatever the build targets. ChooseLoops() checks the
// CPU.
#define ARN_FOR(isa) __attribute__((target(isa)))

namespace arn::limits {
namespace {

// Enough independent sums to hide the latency of an instruction (4 to 5 cycles, two per cycle).
constexpr int kSums = 12;

// Hides the operands from the compiler once per iteration and starts the sums with different
// values, so that it can neither hoist work out of a loop nor merge sums; the final use of the sums
// keeps it from dropping them.
ARN_FOR("avx512f,avx512vnni") void DotAvx512(uint64_t turns) {
  __m512i sums[kSums], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm512_set1_epi32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) sums[j] = _mm512_dpbusd_epi32(sums[j], a, b);
    asm volatile("" : "+v"(a), "+v"(b));
  }
  for (auto& s : sums) asm volatile("" : : "v"(s));
}

ARN_FOR("avx512f") void FmaAvx512(uint64_t turns) {
  __m512 sums[kSums], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm512_set1_ps(static_cast<float>(j));
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) sums[j] = _mm512_fmadd_ps(a, b, sums[j]);
    asm volatile("" : "+v"(a), "+v"(b));
  }
  for (auto& s : sums) asm volatile("" : : "v"(s));
}

ARN_FOR("avx512f") void ReadAvx512(const std::byte* data, size_t n) {
  __m512i sums[8];
  for (int j = 0; j < 8; ++j) sums[j] = _mm512_set1_epi32(j);
  for (size_t i = 0; i < n; i += sizeof sums) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      sums[j] = _mm512_xor_si512(sums[j], _mm512_load_si512(data + i + 64 * j));
    }
  }
  for (auto& s : sums) asm volatile("" : : "v"(s));
}

ARN_FOR("avx2,avxvnni") void DotAvxVnni(uint64_t turns) {
  __m256i sums[kSums], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm256_set1_epi32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) sums[j] = _mm256_dpbusd_avx_epi32(sums[j], a, b);
    asm volatile("" : "+x"(a), "+x"(b));
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

// Takes three instructions per dot product: pairs to 16 bits, pairs to 32, the addition.
ARN_FOR("avx2") void DotAvx2(uint64_t turns) {
  __m256i sums[kSums], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm256_set1_epi32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) {
      asm volatile("" : "+x"(a));  // prevents reuse of the product
      const __m256i pairs = _mm256_maddubs_epi16(a, b);
      sums[j] = _mm256_add_epi32(sums[j], _mm256_madd_epi16(pairs, ones));
    }
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

ARN_FOR("avx2,fma") void FmaAvx2(uint64_t turns) {
  __m256 sums[kSums], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm256_set1_ps(static_cast<float>(j));
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) sums[j] = _mm256_fmadd_ps(a, b, sums[j]);
    asm volatile("" : "+x"(a), "+x"(b));
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

ARN_FOR("avx2") void ReadAvx2(const std::byte* data, size_t n) {
  __m256i sums[8];
  for (int j = 0; j < 8; ++j) sums[j] = _mm256_set1_epi32(j);
  for (size_t i = 0; i < n; i += sizeof sums) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const auto* at = reinterpret_cast<const __m256i*>(data + i + 32 * j);
      sums[j] = _mm256_xor_si256(sums[j], _mm256_load_si256(at));
    }
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

// Baseline x86-64. SSE2 has no int8 multiplication: widens to 16 bits, half a register at a time;
// the cost of widening counts.
void DotSse2(uint64_t turns) {
  __m128i sums[kSums], a = _mm_set1_epi8(3);
  const __m128i b = _mm_set1_epi16(-5);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm_set1_epi32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) {
      asm volatile("" : "+x"(a));
      const __m128i wide = _mm_srai_epi16(_mm_unpacklo_epi8(a, a), 8);
      sums[j] = _mm_add_epi32(sums[j], _mm_madd_epi16(wide, b));
    }
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

void FmaSse2(uint64_t turns) {
  __m128 sums[kSums], a = _mm_set1_ps(0.999f);
  const __m128 b = _mm_set1_ps(1e-3f);
  for (int j = 0; j < kSums; ++j) sums[j] = _mm_set1_ps(static_cast<float>(j));
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) {
      asm volatile("" : "+x"(a));
      sums[j] = _mm_add_ps(sums[j], _mm_mul_ps(a, b));
    }
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

void ReadSse2(const std::byte* data, size_t n) {
  __m128i sums[8];
  for (int j = 0; j < 8; ++j) sums[j] = _mm_set1_epi32(j);
  for (size_t i = 0; i < n; i += sizeof sums) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const auto* at = reinterpret_cast<const __m128i*>(data + i + 16 * j);
      sums[j] = _mm_xor_si128(sums[j], _mm_load_si128(at));
    }
  }
  for (auto& s : sums) asm volatile("" : : "x"(s));
}

// Two operations per multiply-add of a register of `bits`, with elements of `element` bits.
constexpr double OpsPerTurn(int bits, int element) { return 2.0 * kSums * bits / element; }

bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}

}  // namespace

Loops ChooseLoops() {
  Loops loops = {{"pmaddwd xmm", OpsPerTurn(64, 8), DotSse2},
                 {"mulps, addps xmm", OpsPerTurn(128, 32), FmaSse2},
                 ReadSse2};
  if (__builtin_cpu_supports("avx2")) {
    loops.integer = {"vpmaddubsw ymm", OpsPerTurn(256, 8), DotAvx2};
    if (HasAvxVnni()) loops.integer = {"vpdpbusd ymm", OpsPerTurn(256, 8), DotAvxVnni};
    loops.read = ReadAvx2;
    if (__builtin_cpu_supports("fma")) {
      loops.floating = {"vfmadd231ps ymm", OpsPerTurn(256, 32), FmaAvx2};
    }
  }
  if (__builtin_cpu_supports("avx512f")) {
    loops.floating = {"vfmadd231ps zmm", OpsPerTurn(512, 32), FmaAvx512};
    loops.read = ReadAvx512;
    if (__builtin_cpu_supports("avx512vnni")) {
      loops.integer = {"vpdpbusd zmm", OpsPerTurn(512, 8), DotAvx512};
    }
  }
  return loops;
}

}  // namespace arn::limits
#endif
