// tanh in f32, with the same steps as the vector version (kernels/cpu/simd/tanh-inl.h). Below
// kTanhSmall: the polynomial of Cephes' tanhf (Moshier, https://www.netlib.org/cephes/). Above: 1 -
// 2 / (e^2x + 1). Relative error below 2^-21 (tested). NaN stays NaN.
#pragma once

#include <cmath>

#include "kernels/math/exp_f32.h"

namespace arn {

inline constexpr float kTanhSmall = 0.625f;
inline constexpr float kTanhPolynomial[5] = {-5.70498872745e-3f, 2.06390887954e-2f,
                                             -5.37397155531e-2f, 1.33314422036e-1f,
                                             -3.33332819422e-1f};

inline float TanhF32(float x) {
  if (x != x) return x;
  const float size = std::fabs(x);
  if (size < kTanhSmall) {
    const float square = x * x;
    float p = kTanhPolynomial[0];
    for (int i = 1; i < 5; ++i) p = p * square + kTanhPolynomial[i];
    return (p * square) * x + x;
  }
  const float y = 1.0f - 2.0f / (ExpF32(2.0f * size) + 1.0f);
  return x < 0.0f ? -y : y;
}

}  // namespace arn
