#include "platform/base/arith.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "platform/base/dtype.h"

namespace arn {
namespace {

// Returns the value of a half by the definition of IEEE 754 binary16, in double.
double HalfByDefinition(uint16_t h) {
  const int sign = (h >> 15) != 0 ? -1 : 1;
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  if (exponent == 31) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Arith_F32FromF16, EveryHalf_EqualsItsDefinition) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const double expected = HalfByDefinition(static_cast<uint16_t>(h));
    const float got = F32FromF16(static_cast<uint16_t>(h));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << h;
    } else {
      EXPECT_EQ(expected, static_cast<double>(got)) << h;
      EXPECT_EQ(std::signbit(expected), std::signbit(got)) << h;
    }
  }
}

TEST(Arith_F16FromF32, EveryHalf_ComesBack) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float f = F32FromF16(static_cast<uint16_t>(h));
    if (std::isnan(f)) continue;
    EXPECT_EQ(h, F16FromF32(f)) << h;
  }
  EXPECT_TRUE(std::isnan(F32FromF16(F16FromF32(std::nanf("")))));
}

// Between two adjacent halves: rounds down below the middle, up above it, and to even at the
// middle.
TEST(Arith_F16FromF32, BetweenNeighbours_RoundsToNearestEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const double low = HalfByDefinition(static_cast<uint16_t>(h));
    const double high = HalfByDefinition(static_cast<uint16_t>(h + 1));
    const float middle = static_cast<float>((low + high) / 2);  // exact in f32
    EXPECT_EQ((h & 1) != 0 ? h + 1 : h, F16FromF32(middle)) << h;
    EXPECT_EQ(h, F16FromF32(std::nextafterf(middle, 0.0f))) << h;
    EXPECT_EQ(h + 1, F16FromF32(std::nextafterf(middle, 1e9f))) << h;
  }
  EXPECT_EQ(0x7bff, F16FromF32(65519.996f));
  EXPECT_EQ(0x7c00, F16FromF32(65520.0f));
  EXPECT_EQ(0xfc00, F16FromF32(-1e30f));
}

TEST(Arith_Bf16FromF32, Middles_RoundToEven) {
  EXPECT_EQ(0x3f80, Bf16FromF32(1.0f));
  EXPECT_EQ(0x3f80, Bf16FromF32(F32FromBits(0x3f808000)));  // tie, even below
  EXPECT_EQ(0x3f82, Bf16FromF32(F32FromBits(0x3f818000)));  // tie, even above
  EXPECT_EQ(0x3f81, Bf16FromF32(F32FromBits(0x3f808001)));
  EXPECT_TRUE(std::isnan(F32FromBf16(Bf16FromF32(F32FromBits(0x7f800001)))));
  EXPECT_EQ(0x7f80, Bf16FromF32(std::numeric_limits<float>::max()));
}

TEST(Arith_Checked, Overflow_IsFalseAndKeepsOut) {
  uint64_t out = 7;
  EXPECT_FALSE(CheckedAdd(UINT64_MAX, 1, &out));
  EXPECT_FALSE(CheckedMul(uint64_t{1} << 33, uint64_t{1} << 31, &out));
  EXPECT_TRUE(CheckedMul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, &out));
  EXPECT_TRUE(CheckedAdd(UINT64_MAX - 1, 1, &out));
  EXPECT_EQ(UINT64_MAX, out);
}

TEST(Arith_AlignUp, PowersOfTwo) {
  EXPECT_EQ(0u, AlignUp(0, 64));
  EXPECT_EQ(64u, AlignUp(1, 64));
  EXPECT_EQ(64u, AlignUp(64, 64));
  EXPECT_TRUE(IsPowerOfTwo(1));
  EXPECT_FALSE(IsPowerOfTwo(0));
  EXPECT_FALSE(IsPowerOfTwo(96));
}

TEST(DType_Name, EveryType_HasItsOwn) {
  for (uint32_t i = 0; i < kDTypeCount; ++i) {
    EXPECT_STRNE("unknown dtype", DTypeName(static_cast<DType>(i))) << i;
  }
  EXPECT_STREQ("unknown dtype", DTypeName(static_cast<DType>(kDTypeCount)));
}

}  // namespace
}  // namespace arn
