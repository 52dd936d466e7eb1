#include "kernels/pack/low_rank.h"

#include <cmath>
#include <cstring>

#include "kernels/contract/adapter.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr float kLargestInt8 = 127.0f;
// Integers of 4 bits are stored 16 times as large.
constexpr float kInt4Factor = 16.0f;
constexpr float kLeastInt4 = -8.0f, kLargestInt4 = 7.0f;
// Scales of 4 bits that are tried: parts of the one with which the largest value becomes 7.
constexpr uint32_t kScalesTried = 25;
constexpr float kLeastScale = 0.5f;

void PackFloats(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                std::byte* to) {
  for (uint32_t r = 0; r < outputs; ++r) {
    for (uint32_t c = 0; c < inputs; ++c) {
      const float value = matrix[uint64_t{r} * inputs + c];
      const uint16_t half = F16FromF32(value);
      const uint64_t panel = uint64_t{r / kLowRankColumns} * inputs + c;
      const uint64_t at = panel * kLowRankColumns + r % kLowRankColumns;
      if (dtype == DType::kF16) {
        std::memcpy(to + at * sizeof half, &half, sizeof half);
      } else {
        std::memcpy(to + at * sizeof value, &value, sizeof value);
      }
    }
  }
}

float Int4Of(float x, float scale) {
  return Min(Max(std::nearbyint(x / scale), kLeastInt4), kLargestInt4);
}

double SquaredInt4Error(const float* x, uint64_t n, float scale) {
  double error = 0.0;
  for (uint64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) -
                     static_cast<double>(scale) * static_cast<double>(Int4Of(x[i], scale));
    error += d * d;
  }
  return error;
}

// Returns the scale of n values: of kInt8, the one that makes the largest 127; of kInt4, the one of
// kScalesTried with the least squared error; 1 if all values are 0.
float ScaleOf(DType dtype, const float* x, uint64_t n) {
  float largest = 0.0f;
  for (uint64_t i = 0; i < n; ++i) largest = Max(largest, std::abs(x[i]));
  if (largest == 0.0f) return 1.0f;
  if (dtype == DType::kInt8) return largest / kLargestInt8;
  float best = 0.0f;
  double least = 0.0;
  for (uint32_t i = 0; i < kScalesTried; ++i) {
    const float part = 1.0f - (1.0f - kLeastScale) * static_cast<float>(i) / (kScalesTried - 1);
    const float scale = part * largest / kLargestInt4;
    if (scale == 0.0f) break;  // of the smallest floats
    const double error = SquaredInt4Error(x, n, scale);
    if (best != 0.0f && error >= least) continue;
    best = scale;
    least = error;
  }
  return best > 0.0f ? best : largest;
}

// Returns the scale of what is stored.
float StoredScale(DType dtype, float scale) {
  return dtype == DType::kInt4 ? scale / kInt4Factor : scale;
}

// Packs one output into its panel. Returns the sum of the integers that are stored.
int32_t PackIntegers(DType dtype, const float* x, uint32_t inputs, float scale, uint32_t column,
                     std::byte* panel) {
  int32_t sum = 0;
  for (uint32_t k = 0; k < inputs; ++k) {
    if (dtype == DType::kInt8) {
      const auto q =
          static_cast<int8_t>(Min(Max(std::nearbyint(x[k] / scale), -kLargestInt8), kLargestInt8));
      panel[(uint64_t{k / 4} * kLowRankColumns + column) * 4 + k % 4] = static_cast<std::byte>(q);
      sum += q;
      continue;
    }
    const auto q = static_cast<int8_t>(kInt4Factor * Int4Of(x[k], scale));
    const auto bits = static_cast<std::byte>(q);
    panel[(uint64_t{k / 8} * kLowRankColumns + column) * 4 + k % 4] |= k % 8 < 4 ? bits >> 4 : bits;
    sum += q;
  }
  return sum;
}

}  // namespace

void PackLowRankA(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                  std::byte* to) {
  std::memset(to, 0, LowRankABytes(dtype, outputs, inputs));
  if (!IsIntegerLowRank(dtype)) return PackFloats(dtype, matrix, outputs, inputs, to);
  const uint64_t padded = LowRankPanels(outputs) * kLowRankColumns;
  auto* scales = reinterpret_cast<float*>(to);
  auto* sums = reinterpret_cast<int32_t*>(scales + padded);
  std::byte* panels = to + LowRankAHeadBytes(dtype, outputs);
  for (uint32_t r = 0; r < outputs; ++r) {
    const float* row = matrix + uint64_t{r} * inputs;
    const float scale = ScaleOf(dtype, row, inputs);
    scales[r] = StoredScale(dtype, scale);
    sums[r] = PackIntegers(dtype, row, inputs, scale, r % kLowRankColumns,
                           panels + r / kLowRankColumns * LowRankPanelBytes(dtype, inputs));
  }
}

void PackLowRankB(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                  std::byte* to) {
  std::memset(to, 0, LowRankBBytes(dtype, outputs, inputs));
  if (!IsIntegerLowRank(dtype)) return PackFloats(dtype, matrix, outputs, inputs, to);
  auto* scales = reinterpret_cast<float*>(to);
  std::byte* panel = to + LowRankBHeadBytes(dtype, outputs);
  float scale = 1.0f;
  for (uint32_t r = 0; r < outputs; ++r) {
    const float* row = matrix + uint64_t{r} * inputs;
    const uint32_t column = r % kLowRankColumns;
    if (column == 0) {
      scale = ScaleOf(dtype, row, uint64_t{Min(kLowRankColumns, outputs - r)} * inputs);
      scales[r / kLowRankColumns] = StoredScale(dtype, scale);
    }
    PackIntegers(dtype, row, inputs, scale, column,
                 panel + r / kLowRankColumns * LowRankPanelBytes(dtype, inputs));
  }
}

}  // namespace arn
