#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(__ARM_NEON)
#include "tools/limits/loops.h"

namespace arn::limits {
namespace {

// Enough independent sums to hide the latency of an instruction.
constexpr int kSums = 8;

// Volatile: the compiler cannot know the values.
volatile uint32_t g_integer = 5;
volatile float g_float = 0.999f;

// s = s * a + b: has no closed form for the compiler, so the loop must run.
void MultiplyIntegers(uint64_t turns) {
  const uint32_t a = g_integer, b = g_integer;
  uint32_t sums[kSums];
  for (int j = 0; j < kSums; ++j) sums[j] = b + static_cast<uint32_t>(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kSums; ++j) sums[j] = sums[j] * a + b;
  }
  uint32_t all = 0;
  for (uint32_t s : sums) all ^= s;
  g_integer = (all & 2) | 5;
}

void MultiplyFloats(uint64_t turns) {
  const float a = g_float, b = 1.0f - a;
  float sums[kSums];
  for (int j = 0; j < kSums; ++j) sums[j] = static_cast<float>(j);
  for (uint64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kSums; ++j) sums[j] = __builtin_fmaf(sums[j], a, b);
  }
  float all = 0;
  for (float s : sums) all += s;
  g_float = all < 0 ? 0.998f : 0.999f;
}

void ReadWords(const std::byte* data, size_t n) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t sums[4] = {};
  for (size_t i = 0; i < n / sizeof *words; i += 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) sums[j] ^= words[i + j];
  }
  g_integer = ((sums[0] ^ sums[1] ^ sums[2] ^ sums[3]) & 2) | 5;
}

}  // namespace

Loops ChooseLoops() {
  return {{"32-bit multiply, add", 2.0 * kSums, MultiplyIntegers},
          {"scalar fma", 2.0 * kSums, MultiplyFloats},
          ReadWords};
}

}  // namespace arn::limits
#endif
