#include "kernels/pack/low_rank.h"

#include <cmath>
#include <cstring>

#include "kernels/contract/adapter.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr float kLargestInt8 = 127.0f;

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

// Returns the scale with which the largest of n values becomes 127; 1 if all are 0.
float ScaleOf(const float* x, uint64_t n) {
  float largest = 0.0f;
  for (uint64_t i = 0; i < n; ++i) largest = Max(largest, std::abs(x[i]));
  return largest > 0.0f ? largest / kLargestInt8 : 1.0f;
}

// Packs one output into its panel. Returns the sum of its integers.
int32_t PackInt8(const float* x, uint32_t inputs, float scale, uint32_t column, std::byte* panel) {
  int32_t sum = 0;
  for (uint32_t k = 0; k < inputs; ++k) {
    const float q = Min(Max(std::nearbyint(x[k] / scale), -kLargestInt8), kLargestInt8);
    panel[(uint64_t{k / 4} * kLowRankColumns + column) * 4 + k % 4] =
        static_cast<std::byte>(static_cast<int8_t>(q));
    sum += static_cast<int32_t>(q);
  }
  return sum;
}

}  // namespace

void PackLowRankA(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                  std::byte* to) {
  std::memset(to, 0, LowRankABytes(dtype, outputs, inputs));
  if (dtype != DType::kInt8) return PackFloats(dtype, matrix, outputs, inputs, to);
  const uint64_t padded = LowRankPanels(outputs) * kLowRankColumns;
  auto* scales = reinterpret_cast<float*>(to);
  auto* sums = reinterpret_cast<int32_t*>(scales + padded);
  std::byte* panels = to + LowRankAHeadBytes(dtype, outputs);
  for (uint32_t r = 0; r < outputs; ++r) {
    const float* row = matrix + uint64_t{r} * inputs;
    scales[r] = ScaleOf(row, inputs);
    sums[r] = PackInt8(row, inputs, scales[r], r % kLowRankColumns,
                       panels + r / kLowRankColumns * LowRankPanelBytes(dtype, inputs));
  }
}

void PackLowRankB(DType dtype, const float* matrix, uint32_t outputs, uint32_t inputs,
                  std::byte* to) {
  std::memset(to, 0, LowRankBBytes(dtype, outputs, inputs));
  if (dtype != DType::kInt8) return PackFloats(dtype, matrix, outputs, inputs, to);
  auto* scales = reinterpret_cast<float*>(to);
  std::byte* panel = to + LowRankBHeadBytes(dtype, outputs);
  for (uint32_t r = 0; r < outputs; ++r) {
    const float* row = matrix + uint64_t{r} * inputs;
    const uint32_t column = r % kLowRankColumns;
    float* scale = scales + r / kLowRankColumns;
    if (column == 0) *scale = ScaleOf(row, uint64_t{Min(kLowRankColumns, outputs - r)} * inputs);
    PackInt8(row, inputs, *scale, column,
             panel + r / kLowRankColumns * LowRankPanelBytes(dtype, inputs));
  }
}

}  // namespace arn
