#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {

// RMSNorm: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019. LayerNorm: Ba et al.,
// "Layer Normalization", 2016.
void Norm(const NormArgs& args, const float* x, uint32_t n, float* out) {
  const bool is_rms = args.kind == NormKind::kRms;
  double mean = 0.0, square = 0.0;
  for (uint32_t i = 0; i < n && !is_rms; ++i) mean += static_cast<double>(x[i]) / n;
  for (uint32_t i = 0; i < n; ++i) {
    const double centred = static_cast<double>(x[i]) - mean;
    square += centred * centred;
  }
  const double inverse = 1.0 / std::sqrt(square / n + static_cast<double>(args.epsilon));
  for (uint32_t i = 0; i < n; ++i) {
    double y = (static_cast<double>(x[i]) - mean) * inverse * static_cast<double>(args.weight[i]);
    if (!is_rms) y += static_cast<double>(args.bias[i]);
    out[i] = args.accumulate ? out[i] + static_cast<float>(y) : static_cast<float>(y);
  }
}

}  // namespace arn::reference
