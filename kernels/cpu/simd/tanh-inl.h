// TanhF32 (kernels/math/tanh_f32.h) on vectors: same steps, bit-identical. Included once per
// target, after hwy/highway.h.
#if defined(ARN_KERNELS_CPU_SIMD_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_TANH_INL_H_
#undef ARN_KERNELS_CPU_SIMD_TANH_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_TANH_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/math/tanh_f32.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V VecTanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V size = hn::Abs(x), square = hn::Mul(x, x), one = hn::Set(d, 1.0f);
  V p = hn::Set(d, kTanhPolynomial[0]);
  for (int i = 1; i < 5; ++i) p = hn::Add(hn::Mul(p, square), hn::Set(d, kTanhPolynomial[i]));
  const V small = hn::Add(hn::Mul(hn::Mul(p, square), x), x);
  const V two = hn::Set(d, 2.0f);
  const V large = hn::Sub(one, hn::Div(two, hn::Add(VecExpF32(d, hn::Mul(two, size)), one)));
  const V y = hn::IfThenElse(hn::Lt(size, hn::Set(d, kTanhSmall)), small, hn::CopySign(large, x));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
