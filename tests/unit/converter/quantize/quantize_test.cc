#include "converter/quantize/quantize.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

std::vector<float> RandomRow(size_t cols, uint32_t seed, float scale) {
  std::mt19937 generator(seed);
  std::vector<float> row(cols);
  // A sum of uniforms is near normal, and the same with every standard library.
  for (float& v : row) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(generator() >> 8) / 8388608.0f - 1.0f;
    v = sum * scale;
  }
  return row;
}

TEST(QuantizeInt8, EveryValue_WithinHalfAScale) {
  for (const size_t cols : {1, 31, 64, 1000}) {
    const std::vector<float> row = RandomRow(cols, 3, 0.05f);
    std::vector<int8_t> q(cols);
    float scale = 0;
    QuantizeRowInt8(row.data(), cols, q.data(), &scale);
    float largest = 0;
    for (const float v : row) largest = std::max(largest, std::fabs(v));
    EXPECT_FLOAT_EQ(scale, largest / 127);
    int extreme = 0;
    for (size_t i = 0; i < cols; ++i) {
      EXPECT_LE(std::fabs(row[i] - static_cast<float>(q[i]) * scale), 0.5001f * scale);
      extreme = std::max(extreme, std::abs(int{q[i]}));
    }
    EXPECT_EQ(extreme, 127);
  }
}

TEST(QuantizeInt8, Ties_GoToEven) {
  const float row[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f};
  int8_t q[6];
  float scale = 0;
  QuantizeRowInt8(row, 6, q, &scale);
  EXPECT_EQ(scale, 1.0f);
  const int8_t expected[] = {127, 0, 2, 2, 0, -2};
  EXPECT_TRUE(std::equal(q, q + 6, expected));
}

TEST(QuantizeInt8, ZerosAndExtremes_GiveANormalScale) {
  int8_t q[3];
  float scale = 0;
  const float zeros[] = {0.0f, -0.0f, 0.0f};
  QuantizeRowInt8(zeros, 3, q, &scale);
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(q[1], 0);
  const float tiny[] = {1e-44f, -1e-44f, 0.0f};
  QuantizeRowInt8(tiny, 3, q, &scale);
  EXPECT_TRUE(std::isnormal(scale));
  const float huge[] = {FLT_MAX, -FLT_MAX, 1.0f};
  QuantizeRowInt8(huge, 3, q, &scale);
  EXPECT_TRUE(std::isnormal(scale));
  EXPECT_EQ(q[0], 127);
  EXPECT_EQ(q[1], -127);
}

struct Int4Row {
  std::vector<uint8_t> q;
  std::vector<uint16_t> scales;

  explicit Int4Row(const std::vector<float>& row)
      : q(AlignUp(row.size(), 32)), scales(q.size() / 32) {
    QuantizeRowInt4(row.data(), row.size(), nullptr, q.data(), scales.data());
  }
  float value(size_t i) const {
    return static_cast<float>(int{q[i]} - 8) * F32FromBf16(scales[i / 32]);
  }
};

// Returns the squared error of one block of 32 with one scale, computed naively.
double BlockError(const float* w, float scale) {
  const double s = static_cast<double>(F32FromBf16(Bf16FromF32(scale)));
  double error = 0;
  for (size_t i = 0; i < 32; ++i) {
    const double level = std::clamp(std::nearbyint(static_cast<double>(w[i]) / s), -8.0, 7.0);
    const double e = static_cast<double>(w[i]) - level * s;
    error += e * e;
  }
  return error;
}

TEST(QuantizeInt4, Error_NotAboveTheSimpleRules) {
  double chosen_sum = 0, signed_sum = 0, symmetric_sum = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> row = RandomRow(32, seed, seed % 2 == 0 ? 0.02f : 3.0f);
    const Int4Row packed(row);
    double error = 0;
    for (size_t i = 0; i < 32; ++i) {
      const double e = static_cast<double>(row[i]) - static_cast<double>(packed.value(i));
      error += e * e;
    }
    const float extreme = *std::max_element(
        row.begin(), row.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    const double signed_rule = BlockError(row.data(), extreme / -8);
    const double symmetric_rule = BlockError(row.data(), extreme / 7);
    EXPECT_LE(error, signed_rule * 1.0001) << seed;
    EXPECT_LE(error, symmetric_rule * 1.0001) << seed;
    const double unit = seed % 2 == 0 ? 0.02 * 0.02 : 9.0;
    chosen_sum += error / unit;
    signed_sum += signed_rule / unit;
    symmetric_sum += symmetric_rule / unit;
  }
  // The search gives a clearly lower mean error than either rule alone.
  EXPECT_LT(chosen_sum, 0.9 * signed_sum);
  EXPECT_LT(chosen_sum, 0.9 * symmetric_sum);
}

TEST(QuantizeInt4, MultiplesOfAScale_AreExact) {
  std::vector<float> row(64);
  for (size_t i = 0; i < 64; ++i) row[i] = static_cast<float>(static_cast<int>(i % 16) - 8) * 0.25f;
  const Int4Row packed(row);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(packed.value(i), row[i]) << i;
}

TEST(QuantizeInt4, LargestPositive_GetsTheSixteenthLevel) {
  std::vector<float> row(32);
  for (size_t i = 0; i < 32; ++i) row[i] = static_cast<float>(8 - static_cast<int>(i % 16)) * 0.5f;
  const Int4Row packed(row);
  EXPECT_LT(F32FromBf16(packed.scales[0]), 0.0f);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(packed.value(i), row[i]) << i;
}

TEST(QuantizeInt4, ColumnsNotAMultipleOf32_ArePaddedWithZero) {
  for (const size_t cols : {1, 31, 33, 70}) {
    const std::vector<float> row = RandomRow(cols, 11, 0.1f);
    const Int4Row packed(row);
    for (size_t i = cols; i < packed.q.size(); ++i) EXPECT_EQ(packed.q[i], 8) << cols;
    for (const uint8_t q : packed.q) EXPECT_LT(q, 16);
  }
}

TEST(QuantizeInt4, Scales_SixteenthsAreNormal) {
  for (const float magnitude : {0.0f, 1e-45f, 1e-37f, 1e-30f, 1e30f, FLT_MAX}) {
    std::vector<float> row(32, magnitude);
    row[3] = -magnitude;
    const Int4Row packed(row);
    EXPECT_TRUE(std::isnormal(F32FromBf16(packed.scales[0]) / 16)) << magnitude;
    const Int4Row same(std::vector<float>(32, magnitude));
    EXPECT_TRUE(std::isfinite(same.value(0))) << magnitude;
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_TRUE(std::isfinite(packed.value(i))) << magnitude;
      EXPECT_LE(std::fabs(packed.value(i) - row[i]), std::max(magnitude * 0.1f, 1e-36f))
          << magnitude;
    }
  }
}

// Returns the weighted squared error of a row.
double WeightedError(const std::vector<float>& row, const std::vector<float>& importance,
                     const float* row_importance) {
  std::vector<uint8_t> q(AlignUp(row.size(), 32));
  std::vector<uint16_t> scales(q.size() / 32);
  QuantizeRowInt4(row.data(), row.size(), row_importance, q.data(), scales.data());
  double error = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const float value = static_cast<float>(int{q[i]} - 8) * F32FromBf16(scales[i / 32]);
    const double e = static_cast<double>(row[i]) - static_cast<double>(value);
    error += e * e * static_cast<double>(importance[i]);
  }
  return error;
}

TEST(QuantizeInt4, Importance_LowersTheErrorItWeighs) {
  double with = 0, without = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> row = RandomRow(70, seed, 0.02f);
    std::vector<float> importance = RandomRow(70, seed + 1000, 1.0f);
    for (float& v : importance) v = v * v * v * v;
    with += WeightedError(row, importance, importance.data());
    without += WeightedError(row, importance, nullptr);
  }
  EXPECT_LT(with, 0.9 * without);
}

TEST(QuantizeInt4, ImportanceThatSaysNothing_SameBytes) {
  const std::vector<float> row = RandomRow(70, 9, 0.02f);
  const Int4Row plain(row);
  for (const float same : {0.0f, 1e-30f, 1.0f, 1e30f}) {
    const std::vector<float> importance(70, same);
    Int4Row weighted(row);
    QuantizeRowInt4(row.data(), 70, importance.data(), weighted.q.data(), weighted.scales.data());
    EXPECT_EQ(weighted.q, plain.q) << same;
    EXPECT_EQ(weighted.scales, plain.scales) << same;
  }
}

TEST(QuantizeInt4, OneOutlier_KeepsItsPlace) {
  std::vector<float> row = RandomRow(32, 4, 0.01f);
  row[17] = 100.0f;
  const Int4Row packed(row);
  EXPECT_NEAR(packed.value(17), 100.0f, 0.5f);
  for (size_t i = 0; i < 32; ++i) {
    if (i == 17) continue;
    EXPECT_EQ(packed.q[i], 8) << i;
  }
}

TEST(QuantizeInt4, AnyCutInBlocks_SameBytes) {
  const std::vector<float> row = RandomRow(128, 5, 0.02f);
  const Int4Row whole(row);
  const Int4Row half(std::vector<float>(row.begin() + 64, row.end()));
  EXPECT_TRUE(std::equal(half.q.begin(), half.q.end(), whole.q.begin() + 64));
  EXPECT_TRUE(std::equal(half.scales.begin(), half.scales.end(), whole.scales.begin() + 2));
}

TEST(RoundRow, Overflow_GivesItsIndex) {
  const float row[] = {1.0f, -65504.0f, 65520.0f, 3.0f};
  uint16_t out[4];
  EXPECT_EQ(RoundRowF16(row, 4, out), 2u);
  EXPECT_EQ(RoundRowF16(row, 2, out), 2u);
  EXPECT_EQ(F32FromF16(out[1]), -65504.0f);
  const float large[] = {1.0f, FLT_MAX};
  EXPECT_EQ(RoundRowBf16(large, 2, out), 1u);
  EXPECT_EQ(RoundRowBf16(row, 4, out), 4u);
}

TEST(FindNotFinite, FirstIndex_InAnyBlock) {
  std::vector<float> values(3000, 1.0f);
  EXPECT_EQ(FindNotFinite(values.data(), values.size()), 3000u);
  values[2047] = -std::numeric_limits<float>::infinity();
  values[2500] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FindNotFinite(values.data(), values.size()), 2047u);
  EXPECT_EQ(FindNotFinite(values.data() + 2048, 952), 452u);
  EXPECT_EQ(FindNotFinite(values.data(), 0), 0u);
}

}  // namespace
}  // namespace arn::convert
