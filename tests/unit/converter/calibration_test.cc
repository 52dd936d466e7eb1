// Moments of inputs, and rows that are quantised by them.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "converter/calibrate.h"
#include "converter/mixed_precision.h"
#include "converter/quantize/compensate.h"
#include "converter/quantize/quantize.h"
#include "platform/base/arith.h"
#include "tests/support/tiny_checkpoint.h"
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

// Rows whose neighbouring columns go along with each other, about a mean that is not 0.
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
  moments.Add(rows.data(), rows.size() / cols, 1);
  return moments;
}

TEST(InputMoments, ThreeRows_MeansByHand) {
  const float rows[] = {1, 2, -3, 4, 0, 1};  // [3, 2]
  InputMoments moments(2);
  moments.Add(rows, 2, 1);
  moments.Add(rows + 4, 1, 1);
  EXPECT_EQ(moments.n_rows(), 3u);
  EXPECT_DOUBLE_EQ(moments.Mean(0), -2.0 / 3);
  EXPECT_DOUBLE_EQ(moments.Mean(1), 7.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(0, 0), 10.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(0, 1), -10.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(1, 0), -10.0 / 3);
  EXPECT_DOUBLE_EQ(moments.MeanProduct(1, 1), 21.0 / 3);
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
  one.Add(rows.data(), kRows, 1);
  many.Add(rows.data(), kRows, 5);
  for (size_t i = 0; i < kCols; ++i) {
    for (size_t j = i / kMomentGroup * kMomentGroup; j <= i; ++j) {
      ASSERT_EQ(one.MeanProduct(i, j), many.MeanProduct(i, j)) << i << ", " << j;
    }
  }
}

// What the first layer multiplies depends on nothing but the token.
TEST(Calibrate, TinyModel_FirstLayerByHand) {
  const test::TinyCheckpoint tiny;
  const test::TempFolder folder;
  test::WriteTinyCheckpoint(folder.path(), tiny);
  ConvertOptions options;
  options.folder = folder.path();
  options.output = folder / "f32.arn";
  options.formats = {DType::kF32, DType::kF32, DType::kF32, FindPackTarget("portable")};
  Convert(options, {});
  const CalibrationText text = {{3, 10, 17}, 2};
  uint64_t done = 0;
  const Calibration calibration =
      Calibrate(options.output, text, 1, [&](uint64_t n, uint64_t total) {
        done = n;
        EXPECT_EQ(total, 3u);
      });
  EXPECT_EQ(done, 3u);
  EXPECT_THAT(calibration, ElementsAre(Key("layers.0.attention_out"), Key("layers.0.down"),
                                       Key("layers.0.gate_up"), Key("layers.0.qkv"),
                                       Key("layers.1.attention_out"), Key("layers.1.down"),
                                       Key("layers.1.gate_up"), Key("layers.1.qkv")));
  for (const auto& [name, moments] : calibration) EXPECT_EQ(moments->n_rows(), 3u) << name;

  const auto values = [&](const char* name, uint64_t n) {
    return test::TinyValues(name, n, tiny.base_seed, tiny.amplitude);
  };
  const size_t hidden = tiny.hidden;
  const std::vector<float> embedding = values("model.embed_tokens.weight", tiny.vocab * hidden);
  const std::vector<float> weight = values("model.layers.0.input_layernorm.weight", hidden);
  std::vector<double> sums(hidden), products(hidden * hidden);
  for (const int32_t id : text.ids) {
    const float* x = embedding.data() + static_cast<size_t>(id) * hidden;
    double square = 0;
    for (size_t i = 0; i < hidden; ++i)
      square += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double factor = 1 / std::sqrt(square / static_cast<double>(hidden) + tiny.rms_norm_eps);
    std::vector<double> normed(hidden);
    for (size_t i = 0; i < hidden; ++i) {
      normed[i] = static_cast<double>(x[i]) * factor * static_cast<double>(weight[i]);
      sums[i] += normed[i];
    }
    for (size_t i = 0; i < hidden; ++i) {
      for (size_t j = 0; j < hidden; ++j) products[i * hidden + j] += normed[i] * normed[j];
    }
  }
  const InputMoments& moments = *calibration.at("layers.0.qkv");
  for (size_t i = 0; i < hidden; ++i) {
    EXPECT_NEAR(moments.Mean(i), sums[i] / 3, 1e-5) << i;
    for (size_t j = 0; j < hidden; ++j) {
      EXPECT_NEAR(moments.MeanProduct(i, j), products[i * hidden + j] / 3, 1e-5) << i << ", " << j;
    }
  }
}

struct Int4Row {
  std::vector<uint8_t> q;
  std::vector<uint16_t> scales;
  float bias = 0;

  explicit Int4Row(size_t cols) : q((cols + 31) / 32 * 32), scales(q.size() / 32) {}
  float value(size_t i) const {
    return static_cast<float>(int{q[i]} - 8) * F32FromBf16(scales[i / 32]);
  }
};

// Mean square of ((w - q) . x - bias) over rows.
template <typename Quantized>
double ProductError(const std::vector<float>& w, const Quantized& q,
                    const std::vector<float>& rows) {
  double sum = 0;
  const size_t cols = w.size(), n = rows.size() / cols;
  for (size_t r = 0; r < n; ++r) {
    double error = -static_cast<double>(q.bias);
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
    const InputModel model(MomentsOf(CorrelatedRows(2000, cols, 5), cols));
    const std::vector<float> other = CorrelatedRows(300, cols, 6);  // not those of the moments
    double plain_sum = 0, sum = 0;
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const std::vector<float> w = RandomValues(cols, 100 + seed);
      Int4Row plain(cols), row(cols);
      QuantizeRowInt4(w.data(), cols, nullptr, plain.q.data(), plain.scales.data());
      row.bias = CompensateRowInt4(w.data(), cols, model, row.q.data(), row.scales.data());
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
    float scale = 0, bias = 0;
    float value(size_t i) const { return static_cast<float>(q[i]) * scale; }
  };
  constexpr size_t kCols = 100;
  const InputModel model(MomentsOf(CorrelatedRows(2000, kCols, 5), kCols));
  const std::vector<float> other = CorrelatedRows(300, kCols, 6);
  const std::vector<float> w = RandomValues(kCols, 8);
  Int8Row plain, row;
  plain.q.resize(kCols);
  row.q.resize(kCols);
  QuantizeRowInt8(w.data(), kCols, plain.q.data(), &plain.scale);
  row.bias = CompensateRowInt8(w.data(), kCols, model, row.q.data(), &row.scale);
  EXPECT_EQ(row.scale, plain.scale);
  EXPECT_LT(ProductError(w, row, other), 0.35 * ProductError(w, plain, other));
}

TEST(CompensateInt4, MultiplesOfAScale_AreExact) {
  constexpr size_t kCols = 64;
  const InputModel model(MomentsOf(CorrelatedRows(500, kCols, 1), kCols));
  std::vector<float> w(kCols);
  for (size_t i = 0; i < kCols; ++i)
    w[i] = static_cast<float>(static_cast<int>(i % 16) - 8) * 0.25f;
  Int4Row row(kCols);
  EXPECT_EQ(CompensateRowInt4(w.data(), kCols, model, row.q.data(), row.scales.data()), 0.0f);
  for (size_t i = 0; i < kCols; ++i) EXPECT_EQ(row.value(i), w[i]) << i;
}

TEST(CompensateInt4, InputsThatAreConstantOrZero_GiveABias) {
  constexpr size_t kCols = 40;
  std::vector<float> rows(3 * kCols, 0.0f);
  for (size_t r = 0; r < 3; ++r) rows[r * kCols + 7] = 2.0f;
  const InputModel model(MomentsOf(rows, kCols));
  const std::vector<float> w = RandomValues(kCols, 1);
  Int4Row row(kCols);
  row.bias = CompensateRowInt4(w.data(), kCols, model, row.q.data(), row.scales.data());
  EXPECT_NEAR(row.bias, 2 * (w[7] - row.value(7)), 1e-6);
  EXPECT_NEAR(ProductError(w, row, rows), 0.0, 1e-10);
}

TEST(CompensateInt4, ZerosAndExtremes_GiveValuesInRange) {
  constexpr size_t kCols = 64;
  const InputModel model(MomentsOf(CorrelatedRows(500, kCols, 1), kCols));
  for (const float magnitude : {0.0f, 1e-45f, 1e-37f, 1e30f, std::numeric_limits<float>::max()}) {
    std::vector<float> w(kCols, magnitude);
    w[5] = -magnitude;
    Int4Row row(kCols);
    row.bias = CompensateRowInt4(w.data(), kCols, model, row.q.data(), row.scales.data());
    EXPECT_TRUE(std::isfinite(row.bias)) << magnitude;
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

TEST(MixedPrecision, ChooseInt8_MostSensitiveForItsBitsFirst) {
  std::vector<PrecisionUnit> units = ListUnits(kMatrices);
  units[0].sensitivity = 1.0;
  units[1].sensitivity = 2.0;  // of three times the weights
  const double least = BitsPerWeight(kMatrices);
  EXPECT_THAT(ChooseInt8(kMatrices, units, least), IsEmpty());
  // 64 * 32 of 288 * 32 weights take 4.5 bits more.
  EXPECT_THAT(ChooseInt8(kMatrices, units, least + 1.1), ElementsAre(Key("layers.0.qkv")));
  EXPECT_EQ(ChooseInt8(kMatrices, units, 9).size(), 5u);
  units[1].sensitivity = 4.0;
  EXPECT_THAT(ChooseInt8(kMatrices, units, least + 1.1), ElementsAre(Key("layers.0.qkv")));
  EXPECT_EQ(ChooseInt8(kMatrices, units, least + 3.1).size(), 4u);
  EXPECT_THAT(test::ErrorOf([&] { ChooseInt8(kMatrices, units, 4); }), HasSubstr("--bits 4"));
}

}  // namespace
}  // namespace arn::convert
