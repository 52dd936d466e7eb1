// ErfF32 (kernels/math/erf_f32.h) on vectors: same steps, bit-identical. Included once per target,
// after hwy/highway.h.
#if defined(ARN_KERNELS_CPU_SIMD_ERF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_ERF_INL_H_
#undef ARN_KERNELS_CPU_SIMD_ERF_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_ERF_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/math/erf_f32.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

template <int kCount, class D, class V>
HWY_INLINE V ErfPolynomial(D d, const float (&c)[kCount], V y) {
  namespace hn = hwy::HWY_NAMESPACE;
  V p = hn::Set(d, c[0]);
  for (int i = 1; i < kCount; ++i) p = hn::Add(hn::Mul(p, y), hn::Set(d, c[i]));
  return p;
}

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecErf(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V size = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V square = hn::Mul(size, size);
  const V small = hn::Mul(x, ErfPolynomial(d, kErfSmall, square));
  const V q = hn::Div(one, size);
  const V y = hn::Mul(q, q);
  const V p = hn::IfThenElse(hn::Lt(size, hn::Set(d, 2.0f)), ErfPolynomial(d, kErfMiddle, y),
                             ErfPolynomial(d, kErfLarge, y));
  const V large = hn::Sub(one, hn::Mul(hn::Mul(VecExpF32(d, hn::Neg(square)), q), p));
  return hn::IfThenElse(hn::Lt(size, one), small, hn::CopySign(large, x));
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
