// e^x in f32 with steps that round identically on every SIMD unit and compiler: multiplications and
// additions only, none fused. VecExpF32 (kernels/cpu/simd/exp-inl.h) uses the same steps and
// constants, so results are bit-identical.
//
// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; e^r by the polynomial of Cephes' expf
// (Moshier, https://www.netlib.org/cephes/). Relative error below 2^-22 (tested). Returns 0 below
// kExpMin (no subnormal results), e^kExpMax above kExpMax, and 0 for NaN: callers must check for
// NaN themselves.
#pragma once

#include <cstdint>

#include "kernels/math/round.h"
#include "platform/base/arith.h"

namespace arn {

inline constexpr float kExpMin = -87.3365f;  // 2^-126 = e^-87.33654...
inline constexpr float kExpMax = 88.37f;     // keeps n below 128
inline constexpr float kExpLog2E = 1.44269504088896341f;
inline constexpr float kExpLn2High = 0.693359375f;  // 10 bits: n * high is exact
inline constexpr float kExpLn2Low = -2.12194440e-4f;
inline constexpr float kExpPolynomial[6] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                            4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

inline float ExpF32(float x) {
  if (!(x >= kExpMin)) return 0.0f;
  if (x > kExpMax) x = kExpMax;
  const float shifted = x * kExpLog2E + kRoundToInteger;
  const float n = shifted - kRoundToInteger;
  const float r = (x - n * kExpLn2High) - n * kExpLn2Low;
  float p = kExpPolynomial[0];
  for (int i = 1; i < 6; ++i) p = p * r + kExpPolynomial[i];
  p = (p * r) * r + r;
  p = p + 1.0f;
  const uint32_t power = (BitsFromF32(shifted) - BitsFromF32(kRoundToInteger) + 127u) << 23;
  return p * F32FromBits(power);
}

}  // namespace arn
