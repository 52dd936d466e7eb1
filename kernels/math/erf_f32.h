// erf in f32 by the polynomials of Cephes' ndtrf.c (Moshier, https://www.netlib.org/cephes/), with
// the same steps as the vector version (kernels/cpu/simd/erf-inl.h). Absolute error below 2^-22
// (tested).
#pragma once

#include <cmath>

#include "kernels/math/exp_f32.h"

namespace arn {

// erf(x) = x P(x^2) for |x| < 1.
inline constexpr float kErfSmall[7] = {
    7.853861353153693e-5f, -8.010193625184903e-4f, 5.188327685732524e-3f, -2.685381193529856e-2f,
    1.128358514861418e-1f, -3.761262582423300e-1f, 1.128379165726710e+0f};
// erfc(x) = e^-x^2 / x P(1 / x^2) for 1 <= x < 2.
inline constexpr float kErfMiddle[9] = {
    2.326819970068386e-2f,  -1.387039388740657e-1f, 3.687424674597105e-1f,
    -5.824733027278666e-1f, 6.210004621745983e-1f,  -4.944515323274145e-1f,
    3.404879937665872e-1f,  -2.741127028184656e-1f, 5.638259427386472e-1f};
// The same for x >= 2.
inline constexpr float kErfLarge[8] = {
    -1.047766399936249e+1f, 1.297719955372516e+1f, -7.495518717768503e+0f, 2.921019019210786e+0f,
    -1.015265279202700e+0f, 4.218463358204948e-1f, -2.820767439740514e-1f, 5.641895067754075e-1f};

inline float ErfF32(float x) {
  const auto polynomial = [](const float* c, int n, float y) {
    float p = c[0];
    for (int i = 1; i < n; ++i) p = p * y + c[i];
    return p;
  };
  const float size = std::fabs(x);
  if (size < 1.0f) return x * polynomial(kErfSmall, 7, x * x);
  const float q = 1.0f / size, y = q * q;
  const float p = size < 2.0f ? polynomial(kErfMiddle, 9, y) : polynomial(kErfLarge, 8, y);
  const float erf = 1.0f - ExpF32(-(size * size)) * q * p;
  return x < 0.0f ? -erf : erf;
}

}  // namespace arn
