// softplus(x) = log(1 + e^x) on vectors. Included once per target, after hwy/highway.h.
#if defined(ARN_KERNELS_CPU_SIMD_SOFTPLUS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_SOFTPLUS_INL_H_
#undef ARN_KERNELS_CPU_SIMD_SOFTPLUS_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_SOFTPLUS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// log(1 + y) for y in [0, 1]. log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1] by the polynomial of
// Cephes' logf (Moshier, https://www.netlib.org/cephes/). Larger y: log(1 + y) = log 2 + log(1 + (y
// - 1) / 2).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecLog1p(D d, V y) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr float kPolynomial[9] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                    -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                    2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const V half = hn::Set(d, 0.5f);
  const auto is_large = hn::Gt(y, hn::Set(d, 0.41421356f));
  const V f = hn::IfThenElse(is_large, hn::Sub(hn::Mul(y, half), half), y);
  const V square = hn::Mul(f, f);
  V p = hn::Set(d, kPolynomial[0]);
  for (int i = 1; i < 9; ++i) p = hn::Add(hn::Mul(p, f), hn::Set(d, kPolynomial[i]));
  const V log = hn::Add(hn::Sub(hn::Mul(hn::Mul(p, f), square), hn::Mul(half, square)), f);
  return hn::Add(log, hn::IfThenElseZero(is_large, hn::Set(d, 0.69314718055994531f)));
}

// max(x, 0) + log(1 + e^-|x|). Relative error below 2^-21 (tested). Returns x or 0 if e^-|x|
// underflows f32.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecSoftplus(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::Add(hn::Max(x, hn::Zero(d)), VecLog1p(d, VecExp(d, hn::Neg(hn::Abs(x)))));
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
