#include <cmath>

#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

float Apply(Activation activation, float single) {
  const auto x = static_cast<double>(single);
  switch (activation) {
    case Activation::kSilu:  // Elfwing et al., 2017: x * sigmoid(x)
      return single / (1.0f + std::exp(-single));
    case Activation::kGeluTanh: {  // Hendrycks and Gimpel, 2016: tanh approximation
      const double y = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
      return static_cast<float>(0.5 * x * (1.0 + std::tanh(y)));
    }
    case Activation::kGelu:
      return static_cast<float>(0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440)));
    case Activation::kClampedSwiglu:  // needs both halves
    case Activation::kXielu: break;   // needs parameters
    case Activation::kRelu: return Max(single, 0.0f);
    case Activation::kReluSquared: return Max(single, 0.0f) * Max(single, 0.0f);
    case Activation::kQuickGelu: return static_cast<float>(x / (1.0 + std::exp(-1.702 * x)));
    case Activation::kTanh: return static_cast<float>(std::tanh(x));
    case Activation::kSigmoid: return static_cast<float>(1.0 / (1.0 + std::exp(-x)));
    case Activation::kMish:  // Misra, 2019
      return static_cast<float>(x * std::tanh(std::log1p(std::exp(-std::fabs(x))) + Max(x, 0.0)));
  }
  return 0.0f;
}

double Softplus(float x) { return std::log1p(std::exp(static_cast<double>(x))); }

// Huang and Schlag, "Deriving Activation Functions Using Integration", 2024.
void Xielu(const float* parameters, float* x, uint32_t n) {
  const auto beta = static_cast<double>(parameters[2]),
             epsilon = static_cast<double>(parameters[3]);
  const double alpha_p = Softplus(parameters[0]), alpha_n = beta + Softplus(parameters[1]);
  for (uint32_t i = 0; i < n; ++i) {
    const auto y = static_cast<double>(x[i]);
    const double curve = y > 0.0 ? alpha_p * y * y : (std::expm1(Min(y, epsilon)) - y) * alpha_n;
    x[i] = static_cast<float>(curve + beta * y);
  }
}

}  // namespace

// Shazeer, "GLU Variants Improve Transformer", 2020.
void GatedAct(const float* in, uint32_t n, Activation activation, float limit, float* out) {
  if (activation == Activation::kClampedSwiglu) {
    for (uint32_t i = 0; i < n; ++i) {
      const float gate = Min(in[i], limit), up = Max(-limit, Min(in[n + i], limit));
      out[i] = gate / (1.0f + std::exp(-1.702f * gate)) * (up + 1.0f);
    }
    return;
  }
  for (uint32_t i = 0; i < n; ++i) out[i] = Apply(activation, in[i]) * in[n + i];
}

void Act(float* x, uint32_t n, Activation activation, const float* parameters) {
  if (activation == Activation::kXielu) return Xielu(parameters, x, n);
  for (uint32_t i = 0; i < n; ++i) x[i] = Apply(activation, x[i]);
}

void Multiply(const float* by, float scale, uint32_t n, float* x) {
  for (uint32_t i = 0; i < n; ++i) x[i] *= by == nullptr ? scale : by[i] * scale;
}

void ScaleRow(float scale, uint32_t n, float* x) {
  const float factor = Apply(Activation::kSigmoid, scale);
  for (uint32_t i = 0; i < n; ++i) x[i] *= factor;
}

float Softcap(float x, float softcap) {
  if (softcap == 0.0f) return x;
  const auto cap = static_cast<double>(softcap);
  return static_cast<float>(cap * std::tanh(static_cast<double>(x) / cap));
}

}  // namespace arn::reference
