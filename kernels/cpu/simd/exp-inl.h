// ExpF32 (kernels/exp_f32.h) on vectors: the same steps, so the same bits. Included once per target
// by files that have included hwy/highway.h.
#if defined(ARN_KERNELS_CPU_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_EXP_INL_H_
#undef ARN_KERNELS_CPU_SIMD_EXP_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/exp_f32.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecExp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto normal = hn::Ge(x, hn::Set(d, kExpMin));  // false for NaN
  x = hn::Min(x, hn::Set(d, kExpMax));
  const V round = hn::Set(d, kExpRound);
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

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
