// e^x in f32, in steps that every SIMD unit and every compiler rounds alike: multiplications and
// additions only, none fused. VecExpF32 (kernels/cpu/simd/exp-inl.h) takes the same steps
// with the same constants, so both give the same bits.
//
// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; e^r by the polynomial of Cephes' expf
// (Moshier, https://www.netlib.org/cephes/). The relative error is below 2^-22 (tested). Below
// kExpMin the result is 0 (no subnormal results), above kExpMax that of kExpMax. NaN gives 0:
// callers that may meet it look for it themselves.
#pragma once

#include <cstdint>

#include "kernels/round.h"
#include "platform/base/arith.h"

namespace arn {

inline constexpr float kExpMin = -87.3365f;  // 2^-126 = e^-87.33654...
inline constexpr float kExpMax = 88.37f;     // n stays below 128
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
