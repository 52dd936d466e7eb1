#include <cmath>

#include "kernels/reference/ops.h"

namespace arn::reference {
namespace {

float Apply(Activation activation, float x) {
  switch (activation) {
    case Activation::kSilu:  // Elfwing et al., 2017: x * sigmoid(x)
      return x / (1.0f + std::exp(-x));
  }
  return 0.0f;
}

}  // namespace

// Shazeer, "GLU Variants Improve Transformer", 2020.
void GatedAct(const float* in, uint32_t n, Activation activation, float* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = Apply(activation, in[i]) * in[n + i];
}

}  // namespace arn::reference
