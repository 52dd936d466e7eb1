// Checked size arithmetic and conversions between float widths. Use CheckedAdd / CheckedMul for all
// sizes from files or options.
#pragma once

#include <cstdint>
#include <cstring>

namespace arn {

// Returns false and leaves *out unchanged on overflow.
[[nodiscard]] inline bool CheckedAdd(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
[[nodiscard]] inline bool CheckedMul(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// REQUIRES: `align` is a power of two and value + align - 1 < 2^64 (checked in Layout).
constexpr uint64_t AlignUp(uint64_t value, uint64_t align) {
  return (value + align - 1) & ~(align - 1);
}
constexpr uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
// Least common multiple. REQUIRES: both are positive and the product does not overflow.
constexpr uint64_t CommonMultiple(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b;
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}
constexpr bool IsPowerOfTwo(uint64_t v) { return v != 0 && (v & (v - 1)) == 0; }

template <typename T>
constexpr T Min(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
constexpr T Max(T a, T b) {
  return a > b ? a : b;
}

inline float F32FromBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
inline uint32_t BitsFromF32(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return bits;
}

inline float F32FromBf16(uint16_t h) { return F32FromBits(static_cast<uint32_t>(h) << 16); }
// Rounds to nearest even; NaN stays NaN.
uint16_t Bf16FromF32(float f);

// Converts IEEE binary16 <-> binary32: round to nearest even, with subnormals and infinities.
float F32FromF16(uint16_t h);
uint16_t F16FromF32(float f);

}  // namespace arn
