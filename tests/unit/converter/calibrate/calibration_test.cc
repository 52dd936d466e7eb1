// Input moments, rows quantised with them, and the selection of matrices for int8.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "converter/calibrate/mixed_precision.h"
#include "converter/quantize/compensate.h"
#include "converter/quantize/quantize.h"
#include "platform/base/arith.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

std::vector<float> RandomValues(size_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(n);
  for (float& v : values) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(generator() >> 8) / 8388608.0f - 1.0f;
    v = sum;
  }
  return values;
}

// Rows with correlated neighbouring columns and a nonzero mean.
std::vector<float> CorrelatedRows(size_t n_rows, size_t cols, uint32_t seed) {
  std::vector<float> rows = RandomValues(n_rows * cols, seed);
  for (size_t r = 0; r < n_rows; ++r) {
    for (size_t c = 1; c < cols; ++c) {
      rows[r * cols + c] = 0.9f * rows[r * cols + c - 1] + 0.4f * rows[r * cols + c] + 0.2f;
    }
  }
  return rows;
}

InputMoments MomentsOf(const std::vector<float>& rows, size_t cols) {
  InputMoments moments(cols);
  moments.Add(rows.data(), nullptr, rows.size() / cols, 1);
  return moments;
}

TEST(InputMoments, ThreeRows_MeansByHand) {
  const float rows[] = {1, 2, -3, 4, 0, 1};  // [3, 2]
  InputMoments moments(2);
  moments.Add(rows, nullptr, 2, 1);
  moments.Add(rows + 4, nullptr, 1, 1);
  EXPECT_EQ(moments.n_rows(), 3u);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(0, 0), 10.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(0, 1), -10.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(1, 0), -10.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(1, 1), 21.0 / 3);
  EXPECT_FALSE(moments.knows_errors());
}

TEST(InputMoments, ExactRows_ErrorProductsByHand) {
  const float rows[] = {1, 2, -3, 4, 0, 1};   // [3, 2]
  const float exact[] = {2, 2, -3, 2, 1, 0};  // errors {1, 0, 0, -2, 1, -1}
  InputMoments moments(2);
  moments.Add(rows, exact, 1, 1);
  moments.Add(rows + 2, exact + 2, 2, 1);
  ASSERT_TRUE(moments.knows_errors());
  EXPECT_DOUBLE_EQ(moments.MeanErrorProduct(0, 0), 1.0 / 3);   // 1 * 1 + 0 * -3 + 1 * 0
  EXPECT_DOUBLE_EQ(moments.MeanErrorProduct(0, 1), 3.0 / 3);   // 1 * 2 + 0 * 4 + 1 * 1
  EXPECT_DOUBLE_EQ(moments.MeanErrorProduct(1, 0), 6.0 / 3);   // 0 * 1 - 2 * -3 - 1 * 0
  EXPECT_DOUBLE_EQ(moments.MeanErrorProduct(1, 1), -9.0 / 3);  // 0 * 2 - 2 * 4 - 1 * 1
  moments.Add(rows, nullptr, 1, 1);
  EXPECT_FALSE(moments.knows_errors());
}

TEST(InputMoments, Sums_ErrorProductsByHand) {
  const float rows[] = {1, 2, -3, 4};             // [2, 2]
  const float sums[] = {0, 0, 1, 5, 5, 5};        // [2, 3]
  const float exact_sums[] = {1, 0, 3, 5, 6, 4};  // errors {1, 0, 2, 0, 1, -1}
  InputMoments moments(2);
  moments.Add(rows, rows, 2, 1);
  EXPECT_FALSE(moments.knows_sum_errors());
  moments.AddSums(rows, sums, exact_sums, 1, 3, 1);
  EXPECT_FALSE(moments.knows_sum_errors());
  moments.AddSums(rows + 2, sums + 3, exact_sums + 3, 1, 3, 4);
  ASSERT_TRUE(moments.knows_sum_errors());
  EXPECT_DOUBLE_EQ(moments.MeanSumErrorProduct(0, 0), 0.5);
  EXPECT_DOUBLE_EQ(moments.MeanSumErrorProduct(0, 1), 1.0);
  EXPECT_DOUBLE_EQ(moments.MeanSumErrorProduct(1, 0), -1.5);
  EXPECT_DOUBLE_EQ(moments.MeanSumErrorProduct(1, 1), 2.0);
  EXPECT_DOUBLE_EQ(moments.MeanSumErrorProduct(2, 0), 2.5);
  EXPECT_DOUBLE_EQ(moments.MeanSumErrorProduct(2, 1), 0.0);
}

TEST(InputMoments, ManyColumnsAndRows_AsComputedPlainly) {
  constexpr size_t kCols = kMomentGroup + 30, kRows = 131;
  const std::vector<float> rows = RandomValues(kRows * kCols, 2);
  const InputMoments moments = MomentsOf(rows, kCols);
  for (const auto& [i, j] : {std::pair<size_t, size_t>{0, 0},
                             {3, 511},
                             {511, 510},
                             {kMomentGroup, kMomentGroup},
                             {kMomentGroup + 29, kMomentGroup + 1}}) {
    double sum = 0;
    for (size_t r = 0; r < kRows; ++r) {
      sum += static_cast<double>(rows[r * kCols + i]) * static_cast<double>(rows[r * kCols + j]);
    }
    EXPECT_NEAR(moments.MeanProduct(i, j), sum / kRows, 1e-5) << i << ", " << j;
  }
}

TEST(InputMoments, AnyThreads_SameSums) {
  constexpr size_t kCols = 600, kRows = 200;
  const std::vector<float> rows = RandomValues(kRows * kCols, 3);
  InputMoments one(kCols), many(kCols);
  const std::vector<float> exact = RandomValues(kRows * kCols, 4);
  one.Add(rows.data(), exact.data(), kRows, 1);
  many.Add(rows.data(), exact.data(), kRows, 5);
  for (size_t i = 0; i < kCols; ++i) {
    for (size_t j = i / kMomentGroup * kMomentGroup; j <= i; ++j) {
      ASSERT_EQ(one.MeanProduct(i, j), many.MeanProduct(i, j)) << i << ", " << j;
      ASSERT_EQ(one.MeanErrorProduct(i, j), many.MeanErrorProduct(i, j)) << i << ", " << j;
    }
  }
}

struct Int4Row {
  std::vector<uint8_t> q;
  std::vector<uint16_t> scales;

  explicit Int4Row(size_t cols) : q((cols + 31) / 32 * 32), scales(q.size() / 32) {}
  float value(size_t i) const {
    return static_cast<float>(int{q[i]} - 8) * F32FromBf16(scales[i / 32]);
  }
};

// Returns the mean of ((w - q) . x)^2 over the rows.
template <typename Quantized>
double ProductError(const std::vector<float>& w, const Quantized& q,
                    const std::vector<float>& rows) {
  double sum = 0;
  const size_t cols = w.size(), n = rows.size() / cols;
  for (size_t r = 0; r < n; ++r) {
    double error = 0;
    for (size_t c = 0; c < cols; ++c) {
      error += (static_cast<double>(w[c]) - static_cast<double>(q.value(c))) *
               static_cast<double>(rows[r * cols + c]);
    }
    sum += error * error;
  }
  return sum / static_cast<double>(n);
}

TEST(CompensateInt4, ProductsOfLikeInputs_AreNearer) {
  for (const size_t cols : {32, 70, 200, 600}) {
    const InputModel model(MomentsOf(CorrelatedRows(2000, cols, 5), cols), 1);
    const std::vector<float> other = CorrelatedRows(300, cols, 6);  // not the rows of the moments
    double plain_sum = 0, sum = 0;
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const std::vector<float> w = RandomValues(cols, 100 + seed);
      Int4Row plain(cols), row(cols);
      QuantizeRowInt4(w.data(), cols, nullptr, plain.q.data(), plain.scales.data());
      CompensateRowInt4(w.data(), cols, model, row.q.data(), row.scales.data());
      plain_sum += ProductError(w, plain, other);
      sum += ProductError(w, row, other);
      for (size_t i = cols; i < row.q.size(); ++i) EXPECT_EQ(row.q[i], 8);
      for (const uint8_t q : row.q) EXPECT_LT(q, 16);
    }
    EXPECT_LT(sum, 0.35 * plain_sum) << cols;
  }
}

TEST(CompensateInt8, ProductsOfLikeInputs_AreNearer) {
  struct Int8Row {
    std::vector<int8_t> q;
    float scale = 0;
    float value(size_t i) const { return static_cast<float>(q[i]) * scale; }
  };
  constexpr size_t kCols = 100;
  const InputModel model(MomentsOf(CorrelatedRows(2000, kCols, 5), kCols), 1);
  const std::vector<float> other = CorrelatedRows(300, kCols, 6);
  const std::vector<float> w = RandomValues(kCols, 8);
  Int8Row plain, row;
  plain.q.resize(kCols);
  row.q.resize(kCols);
  QuantizeRowInt8(w.data(), kCols, plain.q.data(), &plain.scale);
  CompensateRowInt8(w.data(), kCols, model, row.q.data(), &row.scale);
  EXPECT_EQ(row.scale, plain.scale);
  EXPECT_LT(ProductError(w, row, other), 0.35 * ProductError(w, plain, other));
}

TEST(CompensateInt4, MultiplesOfAScale_AreExact) {
  constexpr size_t kCols = 64;
  const InputModel model(MomentsOf(CorrelatedRows(500, kCols, 1), kCols), 1);
  std::vector<float> w(kCols);
  for (size_t i = 0; i < kCols; ++i)
    w[i] = static_cast<float>(static_cast<int>(i % 16) - 8) * 0.25f;
  Int4Row row(kCols);
  CompensateRowInt4(w.data(), kCols, model, row.q.data(), row.scales.data());
  for (size_t i = 0; i < kCols; ++i) EXPECT_EQ(row.value(i), w[i]) << i;
}

// Only one column matters, and it gets the nearest level.
TEST(CompensateInt4, InputsThatAreConstantOrZero_OneColumnCounts) {
  constexpr size_t kCols = 40;
  std::vector<float> rows(3 * kCols, 0.0f);
  for (size_t r = 0; r < 3; ++r) rows[r * kCols + 7] = 2.0f;
  const InputModel model(MomentsOf(rows, kCols), 1);
  double plain_sum = 0, sum = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> w = RandomValues(kCols, seed);
    Int4Row plain(kCols), row(kCols);
    QuantizeRowInt4(w.data(), kCols, nullptr, plain.q.data(), plain.scales.data());
    CompensateRowInt4(w.data(), kCols, model, row.q.data(), row.scales.data());
    plain_sum += ProductError(w, plain, rows);
    sum += ProductError(w, row, rows);
  }
  EXPECT_LT(sum, 0.5 * plain_sum);
}

// The input errors are a linear map of the inputs, so CorrectRow removes them up to kCorrection.
TEST(CorrectRow, ErrorsThatFollowFromTheInputs_AreTakenBack) {
  constexpr size_t kCols = 70, kRows = 3000;
  const std::vector<float> rows = CorrelatedRows(kRows, kCols, 5);
  std::vector<float> exact = rows;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kCols; ++c) {
      exact[r * kCols + c] += 0.2f * rows[r * kCols + (c + 1) % kCols];
    }
  }
  InputMoments moments(kCols);
  moments.Add(rows.data(), exact.data(), kRows, 1);
  const InputModel model(moments, 1);
  const std::vector<float> w = RandomValues(kCols, 9);
  const std::vector<float> corrected = CorrectRow(w.data(), kCols, 0, model);
  double before = 0, after = 0;
  for (size_t r = 0; r < kRows; ++r) {
    double wanted = 0, plain = 0, now = 0;
    for (size_t c = 0; c < kCols; ++c) {
      const auto x = static_cast<double>(rows[r * kCols + c]);
      wanted += static_cast<double>(w[c]) * static_cast<double>(exact[r * kCols + c]);
      plain += static_cast<double>(w[c]) * x;
      now += static_cast<double>(corrected[c]) * x;
    }
    before += (wanted - plain) * (wanted - plain);
    after += (wanted - now) * (wanted - now);
  }
  const double left = 1 - static_cast<double>(kCorrection);
  EXPECT_LT(after, 2.0 * left * left * before);
  EXPECT_GT(after, 0.5 * left * left * before);
}

// Output 1 lacks twice input 3, so CorrectRow adds that to its weight.
TEST(CorrectRow, WhatTheSumLacks_IsAdded) {
  constexpr size_t kCols = 40, kRows = 3000;
  const std::vector<float> rows = RandomValues(kRows * kCols, 5);
  std::vector<float> sums(2 * kRows), exact_sums(2 * kRows);
  for (size_t r = 0; r < kRows; ++r) exact_sums[2 * r + 1] = 2.0f * rows[r * kCols + 3];
  InputMoments moments(kCols);
  moments.Add(rows.data(), rows.data(), kRows, 1);
  moments.AddSums(rows.data(), sums.data(), exact_sums.data(), kRows, 2, 1);
  const InputModel model(moments, 2);
  const std::vector<float> w = RandomValues(kCols, 9);
  EXPECT_EQ(CorrectRow(w.data(), kCols, 0, model), w);
  const std::vector<float> corrected = CorrectRow(w.data(), kCols, 1, model);
  for (size_t c = 0; c < kCols; ++c) {
    EXPECT_NEAR(corrected[c] - w[c], c == 3 ? 2 * kSumCorrection : 0.0f, 0.05f) << c;
  }
}

TEST(CorrectRow, NoErrors_OrNoneKnown_TheRowItself) {
  constexpr size_t kCols = 600;
  const std::vector<float> rows = CorrelatedRows(50, kCols, 5);
  const std::vector<float> w = RandomValues(kCols, 9);
  EXPECT_EQ(CorrectRow(w.data(), kCols, 0, InputModel(MomentsOf(rows, kCols), 1)), w);
  InputMoments moments(kCols);
  moments.Add(rows.data(), rows.data(), 50, 1);
  EXPECT_EQ(CorrectRow(w.data(), kCols, 0, InputModel(moments, 1)), w);
}

TEST(CompensateInt4, ZerosAndExtremes_GiveValuesInRange) {
  constexpr size_t kCols = 64;
  const InputModel model(MomentsOf(CorrelatedRows(500, kCols, 1), kCols), 1);
  for (const float magnitude : {0.0f, 1e-45f, 1e-37f, 1e30f, std::numeric_limits<float>::max()}) {
    std::vector<float> w(kCols, magnitude);
    w[5] = -magnitude;
    Int4Row row(kCols);
    CompensateRowInt4(w.data(), kCols, model, row.q.data(), row.scales.data());
    for (size_t i = 0; i < kCols; ++i) {
      EXPECT_LT(row.q[i], 16) << magnitude;
      EXPECT_TRUE(std::isfinite(row.value(i))) << magnitude;
    }
  }
}

const std::vector<MatrixInfo> kMatrices = {
    {"embedding", DType::kInt8, 64, 32, false},
    {"layers.0.qkv", DType::kInt4, 64, 32, true},
    {"layers.0.experts.0.gate_up", DType::kInt4, 64, 32, true},
    {"layers.0.experts.0.down", DType::kInt4, 32, 32, true},
    {"layers.0.experts.1.gate_up", DType::kInt4, 64, 32, true},
    {"layers.0.experts.1.down", DType::kInt4, 32, 32, true}};

TEST(MixedPrecision, BitsPerWeight_CountScalesAndPadding) {
  EXPECT_DOUBLE_EQ(BitsPerWeight({{"a", DType::kInt4, 4, 32, true}}), 4.5);
  EXPECT_DOUBLE_EQ(BitsPerWeight({{"a", DType::kInt4, 4, 16, true}}), 9.0);
  EXPECT_DOUBLE_EQ(BitsPerWeight({{"a", DType::kInt8, 4, 32, true}}), 9.0);
  EXPECT_DOUBLE_EQ(
      BitsPerWeight({{"a", DType::kInt8, 4, 32, true}, {"b", DType::kBf16, 4, 32, true}}), 12.5);
}

TEST(MixedPrecision, Units_ExpertsOfALayerTogether) {
  const std::vector<PrecisionUnit> units = ListUnits(kMatrices);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].name, "layers.0.qkv");
  EXPECT_THAT(units[0].matrices, ElementsAre("layers.0.qkv"));
  EXPECT_EQ(units[1].name, "layers.0.experts");
  EXPECT_EQ(units[1].matrices.size(), 4u);
}

TEST(MixedPrecision, ChooseTypes_LeastCostForTheBits) {
  std::vector<PrecisionUnit> units = ListUnits(kMatrices);
  units[0].costs = {1.0};
  units[1].costs = {2.0};  // with three times the weights
  const double least = BitsPerWeight(kMatrices);
  EXPECT_THAT(ChooseTypes(kMatrices, units, DType::kInt4, least), IsEmpty());
  // 64 * 32 of 288 * 32 weights need 4.5 more bits each.
  EXPECT_THAT(ChooseTypes(kMatrices, units, DType::kInt4, least + 1.1),
              ElementsAre(Key("layers.0.qkv")));
  EXPECT_EQ(ChooseTypes(kMatrices, units, DType::kInt4, 9).size(), 5u);
  units[1].costs = {4.0};
  EXPECT_THAT(ChooseTypes(kMatrices, units, DType::kInt4, least + 1.1),
              ElementsAre(Key("layers.0.qkv")));
  EXPECT_EQ(ChooseTypes(kMatrices, units, DType::kInt4, least + 3.1).size(), 4u);
  EXPECT_THAT(test::ErrorOf([&] { ChooseTypes(kMatrices, units, DType::kInt4, 4); }),
              HasSubstr("--bits 4"));
}

// A greedy choice by density would leave room that no other matrix fits.
TEST(MixedPrecision, ChooseTypes_FillsTheRoom) {
  const std::vector<MatrixInfo> matrices = {{"a", DType::kInt4, 40, 32, true},
                                            {"b", DType::kInt4, 30, 32, true},
                                            {"c", DType::kInt4, 30, 32, true}};
  std::vector<PrecisionUnit> units = ListUnits(matrices);
  units[0].costs = {5};
  units[1].costs = units[2].costs = {3.5};
  EXPECT_THAT(ChooseTypes(matrices, units, DType::kInt4, 4.5 + 0.61 * 4.5),
              ElementsAre(Key("b"), Key("c")));
}

TEST(MixedPrecision, ChooseTypes_FromSeveral) {
  const std::vector<MatrixInfo> matrices = {{"a", DType::kInt2, 32, 64, true},
                                            {"b", DType::kInt2, 32, 64, true},
                                            {"c", DType::kInt2, 32, 64, true}};
  std::vector<PrecisionUnit> units = ListUnits(matrices);
  units[0].costs = {4, 1, 0.1};
  units[1].costs = {8, 1, 0.2};
  units[2].costs = {0.5, 0.4, 0.3};
  const auto choose = [&](double bits) { return ChooseTypes(matrices, units, DType::kInt2, bits); };
  // int2, int3, int4 and int8 take 2.75, 3.75, 4.5 and 8.5 bits here.
  EXPECT_THAT(choose(2.75), IsEmpty());
  EXPECT_THAT(choose(2.75 + 1.01 / 3), ElementsAre(std::pair("b", DType::kInt3)));
  EXPECT_THAT(choose(2.75 + 2.01 / 3),
              ElementsAre(std::pair("a", DType::kInt3), std::pair("b", DType::kInt3)));
  EXPECT_THAT(choose(2.75 + 3.51 / 3),
              ElementsAre(std::pair("a", DType::kInt4), std::pair("b", DType::kInt4)));
  EXPECT_THAT(choose(8.6), ElementsAre(Key("a"), Key("b"), Key("c")));
  EXPECT_THAT(test::ErrorOf([&] { choose(2.5); }), HasSubstr("all layers in int2 a weight takes"));
}

}  // namespace
}  // namespace arn::convert
