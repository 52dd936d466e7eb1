// e^x on vectors. Included once per target, after hwy/highway.h.
#if defined(ARN_KERNELS_CPU_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_EXP_INL_H_
#undef ARN_KERNELS_CPU_SIMD_EXP_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/math/exp_f32.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// ExpF32 (kernels/math/exp_f32.h): same steps, bit-identical.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecExpF32(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto normal = hn::Ge(x, hn::Set(d, kExpMin));  // false for NaN
  x = hn::Min(x, hn::Set(d, kExpMax));
  const V round = hn::Set(d, kRoundToInteger);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, kExpLog2E)), round);
  const V n = hn::Sub(shifted, round);
  const V r =
      hn::Sub(hn::Sub(x, hn::Mul(n, hn::Set(d, kExpLn2High))), hn::Mul(n, hn::Set(d, kExpLn2Low)));
  V p = hn::Set(d, kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i) p = hn::Add(hn::Mul(p, r), hn::Set(d, kExpPolynomial[i]));
  p = hn::Add(hn::Mul(hn::Mul(p, r), r), r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  const auto power = hn::ShiftLeft<23>(
      hn::Add(hn::Sub(hn::BitCast(du, shifted), hn::BitCast(du, round)), hn::Set(du, 127u)));
  return hn::IfThenElseZero(normal, hn::Mul(p, hn::BitCast(d, power)));
}

// e^x with relative error below 2^-21 (2^-22 with FMA), in half the instructions; e^0 is exactly 1.
// NaN and out-of-range inputs as in ExpF32. The polynomial is minimax in relative error on |r| <=
// ln 2 / 2: 9.2e-8.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecExp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr float kPolynomial[5] = {8.290272206e-3f, 4.189816117e-2f, 1.666763872e-1f,
                                    4.999914765e-1f, 9.999997020e-1f};
  const hn::RebindToUnsigned<D> du;
  const auto normal = hn::Ge(x, hn::Set(d, kExpMin));  // false for NaN
  x = hn::Min(x, hn::Set(d, kExpMax));
  const V round = hn::Set(d, kRoundToInteger);
  const V shifted = hn::MulAdd(x, hn::Set(d, kExpLog2E), round);
  const V n = hn::Sub(shifted, round);
  const V r =
      hn::NegMulAdd(n, hn::Set(d, kExpLn2Low), hn::NegMulAdd(n, hn::Set(d, kExpLn2High), x));
  V p = hn::Set(d, kPolynomial[0]);
  for (int i = 1; i < 5; ++i) p = hn::MulAdd(p, r, hn::Set(d, kPolynomial[i]));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  // Adds n to the exponent of p; the shift drops the upper bits of `shifted`. p is within [0.7,
  // 1.42], and the power of two within the normal numbers.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(du, shifted));
  return hn::IfThenElseZero(normal, hn::BitCast(d, hn::Add(hn::BitCast(du, p), exponent)));
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
