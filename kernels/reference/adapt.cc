#include <cstring>

#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

double LowRankElement(DType dtype, const std::byte* panels, uint64_t index) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, panels + index * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t half;
  std::memcpy(&half, panels + index * sizeof half, sizeof half);
  return static_cast<double>(F32FromF16(half));
}

}  // namespace

void MultiplyLowRank(const LowRankArgs& args) {
  for (uint32_t row = 0; row < args.n_rows; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* out = args.out + row * args.out_stride;
    for (uint32_t c = 0; c < args.n; ++c) {
      const uint64_t first = uint64_t{c / kLowRankColumns} * args.inputs * kLowRankColumns;
      double sum = 0.0;
      for (uint32_t k = 0; k < args.inputs; ++k) {
        const uint64_t at = first + uint64_t{k} * kLowRankColumns + c % kLowRankColumns;
        sum += static_cast<double>(x[k]) * LowRankElement(args.dtype, args.panels, at);
      }
      const auto product = static_cast<float>(sum);
      out[c] = args.accumulates ? out[c] + product : args.factor * product;
    }
  }
}

}  // namespace arn::reference
