#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {

// Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
void RmsNorm(const float* x, const float* weight, uint32_t n, float epsilon, float* out) {
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double mean = sum / n;
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(epsilon)));
  for (uint32_t i = 0; i < n; ++i) out[i] = x[i] * inverse * weight[i];
}

}  // namespace arn::reference
