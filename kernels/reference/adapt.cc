#include <cmath>
#include <cstring>

#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

// Element k of an output, as it is stored.
double LowRankElement(const LowRankArgs& args, uint32_t output, uint32_t k) {
  const uint32_t column = output % kLowRankColumns;
  const std::byte* panel =
      args.panels + output / kLowRankColumns * LowRankPanelBytes(args.dtype, args.inputs);
  if (args.dtype == DType::kInt8) {
    const uint64_t at = (uint64_t{k / 4} * kLowRankColumns + column) * 4 + k % 4;
    return static_cast<double>(static_cast<int8_t>(panel[at]));
  }
  if (args.dtype == DType::kInt4) {
    const uint64_t at = (uint64_t{k / 8} * kLowRankColumns + column) * 4 + k % 4;
    const auto both = static_cast<uint8_t>(panel[at]);
    const int high = k % 8 < 4 ? both << 4 : both;
    return static_cast<double>(static_cast<int8_t>(high & 0xF0));
  }
  const uint64_t at = uint64_t{k} * kLowRankColumns + column;
  if (args.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, panel + at * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t half;
  std::memcpy(&half, panel + at * sizeof half, sizeof half);
  return static_cast<double>(F32FromF16(half));
}

double LowRankScale(const LowRankArgs& args, uint32_t output) {
  if (!IsIntegerLowRank(args.dtype)) return 1.0;
  const uint32_t i = args.accumulates ? output / kLowRankColumns : output;
  return static_cast<double>(args.scales[i]);
}

// Rounds n of the ranks of a row to 8 bits.
void RoundRanks(const float* y, uint32_t n, double* rounded) {
  float largest = 0.0f;
  for (uint32_t i = 0; i < n; ++i) largest = Max(largest, std::abs(y[i]));
  const float factor = largest > 0.0f ? 127.0f / largest : 0.0f;
  const double scale = static_cast<double>(largest) / 127.0;
  for (uint32_t i = 0; i < n; ++i) {
    rounded[i] = static_cast<double>(std::nearbyintf(y[i] * factor)) * scale;
  }
}

// Returns the sum of products [first, end). The input of an integer B is rounded.
double LowRankDot(const LowRankArgs& args, const float* x, uint32_t output, uint32_t first,
                  uint32_t end) {
  double rounded[kRankChunk], sum = 0.0;
  const bool rounds = IsIntegerLowRank(args.dtype) && args.accumulates;
  if (rounds) RoundRanks(x + first, end - first, rounded);
  for (uint32_t k = first; k < end; ++k) {
    const double input = rounds ? rounded[k - first] : static_cast<double>(x[k]);
    sum += input * LowRankElement(args, output, k);
  }
  return sum * LowRankScale(args, output);
}

}  // namespace

void MultiplyLowRank(const LowRankArgs& args) {
  const bool in_chunks = IsIntegerLowRank(args.dtype) && args.accumulates;
  const uint32_t chunk = in_chunks ? kRankChunk : args.inputs;
  for (uint32_t row = 0; row < args.n_rows; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* out = args.out + row * args.out_stride;
    for (uint32_t c = 0; c < args.n; ++c) {
      if (!args.accumulates) out[c] = 0.0f;
      for (uint32_t k = 0; k < args.inputs; k += chunk) {
        const auto product =
            static_cast<float>(LowRankDot(args, x, c, k, Min(k + chunk, args.inputs)));
        out[c] += args.accumulates ? product : args.factor * product;
      }
    }
  }
}

}  // namespace arn::reference
