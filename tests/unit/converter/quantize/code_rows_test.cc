#include "converter/quantize/code_rows.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "converter/base/ternary_row.h"
#include "converter/quantize/compensate.h"
#include "gtest/gtest.h"

namespace arn::convert {
namespace {

std::vector<float> NormalRow(size_t cols, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(cols);
  for (float& value : row) value = normal(generator);
  return row;
}

// A quantised row, and its memory.
struct Row {
  Row(const CodeType& of_type, size_t n)
      : type(of_type), cols(n), codes(type.Padded(n), 77), scales(type.Blocks(n), 77) {}
  CodeRow out() { return {codes.data(), scales.data(), &row_scale}; }
  std::vector<float> values() const {
    std::vector<float> w(cols);
    for (size_t c = 0; c < cols; ++c) {
      w[c] =
          CodeValue(type.levels[codes[c]], BlockScaleOf(type, scales[c / type.block]), row_scale);
    }
    return w;
  }

  const CodeType& type;
  size_t cols;
  std::vector<uint8_t> codes;
  std::vector<int16_t> scales;
  float row_scale = -1.0f;
};

bool EncodeTernary(const std::vector<float>& w, Row* row) {
  return EncodeTernaryRow(w.data(), w.size(), row->codes.data(), row->scales.data(),
                          &row->row_scale);
}

std::vector<float> Signs(size_t cols, float scale) {
  std::vector<float> w(cols);
  for (size_t c = 0; c < cols; ++c)
    w[c] = static_cast<float>(static_cast<int>(c * 7 % 3) - 1) * scale;
  return w;
}

TEST(EncodeTernaryRow, OneScale_OfAnyF32_IsKept) {
  for (const size_t cols : {1, 31, 172, 1280}) {
    for (const float scale : {0.1f, 3e-20f, 7e15f}) {
      const std::vector<float> w = Signs(cols, scale);
      for (const CodeType* type : {&kTernaryCodes, &kTernaryRowCodes}) {
        Row row(*type, cols);
        ASSERT_TRUE(EncodeTernary(w, &row));
        EXPECT_EQ(w, row.values());
      }
    }
  }
}

TEST(EncodeTernaryRow, BlocksWithScalesOfF16_AreKept) {
  std::vector<float> w = Signs(600, 0.5f);
  for (size_t c = 256; c < 512; ++c) w[c] = 0.0f;
  for (size_t c = 512; c < 600; ++c) w[c] *= 3.25f;
  Row row(kTernaryCodes, w.size());
  ASSERT_TRUE(EncodeTernary(w, &row));
  EXPECT_EQ(w, row.values());
}

TEST(TernaryMagnitude, SaysWhetherARowHasOne) {
  const float several[] = {0.5f, 0.0f, -0.25f}, one[] = {0.0f, -0.5f, 0.5f},
              zeros[] = {0.0f, -0.0f};
  EXPECT_EQ(-1.0f, TernaryMagnitude(several, 3));
  EXPECT_EQ(0.5f, TernaryMagnitude(one, 3));
  EXPECT_EQ(0.0f, TernaryMagnitude(zeros, 2));
}

TEST(EncodeTernaryRow, OtherRows_AreRefused) {
  std::vector<float> w = Signs(300, 0.5f);
  Row row(kTernaryCodes, w.size());
  w[299] = 0.1f;  // no number of f16
  w[256] = w[257] = w[258] = 0.0f;
  EXPECT_FALSE(EncodeTernary(w, &row));
  w = Signs(300, 0.5f);
  w[3] = 0.25f;
  EXPECT_FALSE(EncodeTernary(w, &row));
}

TEST(EncodeTernaryRow, Zeros_AreZeros) {
  const std::vector<float> w(40, 0.0f);
  Row row(kTernaryCodes, w.size());
  ASSERT_TRUE(EncodeTernary(w, &row));
  EXPECT_EQ(w, row.values());
}

double RelativeError(const std::vector<float>& w, const std::vector<float>& q) {
  double error = 0, square = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const auto value = static_cast<double>(w[i]);
    error += std::pow(value - static_cast<double>(q[i]), 2);
    square += value * value;
  }
  return error / square;
}

struct Bound {
  const CodeType& type;
  double most;
};
// One scale and the best levels for a normal distribution have 0.1175 and 0.03454 (Lloyd-Max);
// scales of blocks gain more than their rounding costs.
const Bound kBounds[] = {{kInt2Codes, 0.1175}, {kInt3Codes, 0.03454}};

TEST(QuantizeRowCodes, NormalWeights_HaveTheErrorOfTheirLevels) {
  for (const auto& [type, most] : kBounds) {
    const std::vector<float> w = NormalRow(4096, 5);
    Row row(type, w.size());
    QuantizeRowCodes(type, w.data(), w.size(), nullptr, row.out());
    const double error = RelativeError(w, row.values());
    EXPECT_LT(error, most) << type.bits;
    EXPECT_GT(error, most / 2) << type.bits;
    EXPECT_EQ(127, std::abs(int{*std::max_element(
                       row.scales.begin(), row.scales.end(),
                       [](int16_t a, int16_t b) { return std::abs(a) < std::abs(b); })}));
  }
}

TEST(QuantizeRowCodes, ScaledRowsAndOddSizes_KeepTheirCodes) {
  for (const auto& [type, most] : kBounds) {
    for (const size_t cols : {1, 31, 33, 172}) {
      const std::vector<float> w = NormalRow(cols, 6);
      std::vector<float> larger = w;
      for (float& value : larger) value *= 4.0f;
      Row a(type, cols), b(type, cols);
      QuantizeRowCodes(type, w.data(), cols, nullptr, a.out());
      QuantizeRowCodes(type, larger.data(), cols, nullptr, b.out());
      EXPECT_EQ(a.codes, b.codes);
      EXPECT_EQ(a.scales, b.scales);
      EXPECT_FLOAT_EQ(4.0f * a.row_scale, b.row_scale);
    }
  }
}

TEST(QuantizeRowCodes, ZerosAndTinyWeights_AreZeros) {
  for (const auto& [type, most] : kBounds) {
    std::vector<float> w(40, 0.0f);
    w[7] = 1e-42f;
    Row row(type, w.size());
    QuantizeRowCodes(type, w.data(), w.size(), nullptr, row.out());
    EXPECT_EQ(std::vector<float>(40, 0.0f), row.values());
  }
}

// Inputs of which neighbours are nearly the same: errors can compensate each other.
TEST(CompensateRowCodes, CorrelatedInputs_HaveASmallerError) {
  constexpr size_t kCols = 96, kRows = 400;
  std::mt19937 generator(8);
  std::normal_distribution<float> normal;
  InputMoments moments(kCols);
  std::vector<float> x(kRows * kCols);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kCols; ++c) {
      const float before = c == 0 ? 0.0f : x[r * kCols + c - 1];
      x[r * kCols + c] = 0.9f * before + 0.4f * normal(generator);
    }
  }
  moments.Add(x.data(), nullptr, kRows, 1);
  const InputModel inputs(moments, 1);
  const std::vector<float> w = NormalRow(kCols, 9);
  const auto error = [&](const std::vector<float>& q) {
    double sum = 0;
    for (size_t r = 0; r < kRows; ++r) {
      double dot = 0;
      for (size_t c = 0; c < kCols; ++c) {
        dot += static_cast<double>(x[r * kCols + c]) * static_cast<double>(w[c] - q[c]);
      }
      sum += dot * dot;
    }
    return sum;
  };
  for (const auto& [type, most] : kBounds) {
    Row rounded(type, kCols), compensated(type, kCols);
    QuantizeRowCodes(type, w.data(), kCols, nullptr, rounded.out());
    CompensateRowCodes(type, w.data(), kCols, inputs, compensated.out());
    EXPECT_LT(error(compensated.values()), 0.5 * error(rounded.values())) << type.bits;
  }
}

}  // namespace
}  // namespace arn::convert
