#include <cmath>

#include "kernels/contract/ops.h"

namespace arn {

void NormRows(const float* weight, const float* bias, float epsilon, uint32_t n_rows,
              uint32_t width, float* x) {
  const uint64_t n = uint64_t{n_rows} * width;
  double sum = 0.0, squares = 0.0;
  for (uint64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  for (uint64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - mean;
    squares += d * d;
  }
  const double variance = squares / static_cast<double>(n) + static_cast<double>(epsilon);
  const auto scale = static_cast<float>(1.0 / std::sqrt(variance));
  const auto center = static_cast<float>(mean);
  for (uint32_t row = 0; row < n_rows; ++row) {
    float* at = x + uint64_t{row} * width;
    for (uint32_t i = 0; i < width; ++i) at[i] = (at[i] - center) * scale * weight[i] + bias[i];
  }
}

}  // namespace arn
