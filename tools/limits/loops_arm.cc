#if defined(__aarch64__) || defined(__ARM_NEON)
#include <arm_neon.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "tools/limits/loops.h"

#define ARN_FOR(isa) __attribute__((target(isa)))

namespace arn::limits {
namespace {

// Enough independent sums to hide the latency of an instruction (4 cycles, up to four per cycle).
constexpr int kSums = 16;

// Hides the operands from the compiler once per iteration and starts the sums with different
// values, so that it can neither hoist work out of a loop nor merge sums; the final use of the sums
// keeps it from dropping them.
#if defined(__aarch64__)
ARN_FOR("arch=armv8.2-a+i8mm") void DotI8mm(uint64_t turns) {
  int32x4_t sums[kSums];
  int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
  for (int j = 0; j < kSums; ++j) sums[j] = vdupq_n_s32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j) sums[j] = vmmlaq_s32(sums[j], a, b);
    asm volatile("" : "+w"(a), "+w"(b));
  }
  for (auto& s : sums) asm volatile("" : : "w"(s));
}

ARN_FOR("arch=armv8.2-a+dotprod") void DotDotprod(uint64_t turns) {
  int32x4_t sums[kSums];
  int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
  for (int j = 0; j < kSums; ++j) sums[j] = vdupq_n_s32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j) sums[j] = vdotq_s32(sums[j], a, b);
    asm volatile("" : "+w"(a), "+w"(b));
  }
  for (auto& s : sums) asm volatile("" : : "w"(s));
}

#endif

// Eight 16-bit multiplications, then pairwise additions to 32 bits.
void DotNeon(uint64_t turns) {
  int32x4_t sums[kSums];
  int8x8_t a = vdup_n_s8(3);
  const int8x8_t b = vdup_n_s8(-5);
  for (int j = 0; j < kSums; ++j) sums[j] = vdupq_n_s32(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j) {
      asm volatile("" : "+w"(a));
      sums[j] = vpadalq_s16(sums[j], vmull_s8(a, b));
    }
  }
  for (auto& s : sums) asm volatile("" : : "w"(s));
}

void FmaNeon(uint64_t turns) {
  float32x4_t sums[kSums], a = vdupq_n_f32(0.999f), b = vdupq_n_f32(1e-3f);
  for (int j = 0; j < kSums; ++j) sums[j] = vdupq_n_f32(static_cast<float>(j));
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kSums; ++j) sums[j] = vfmaq_f32(sums[j], a, b);
    asm volatile("" : "+w"(a), "+w"(b));
  }
  for (auto& s : sums) asm volatile("" : : "w"(s));
}

void ReadNeon(const std::byte* data, size_t n) {
  const auto* at = reinterpret_cast<const uint8_t*>(data);
  uint8x16_t sums[8];
  for (int j = 0; j < 8; ++j) sums[j] = vdupq_n_u8(static_cast<uint8_t>(j));
  for (size_t i = 0; i < n; i += sizeof sums) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) sums[j] = veorq_u8(sums[j], vld1q_u8(at + i + 16 * j));
  }
  for (auto& s : sums) asm volatile("" : : "w"(s));
}

}  // namespace

Loops ChooseLoops() {
  Loops loops = {
      {"smull, sadalp", 2.0 * kSums * 8, DotNeon}, {"fmla", 2.0 * kSums * 4, FmaNeon}, ReadNeon};
#if defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) {
    loops.integer = {"sdot", 2.0 * kSums * 16, DotDotprod};
  }
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) {
    loops.integer = {"smmla", 2.0 * kSums * 32, DotI8mm};
  }
#endif
  return loops;
}

}  // namespace arn::limits
#endif
