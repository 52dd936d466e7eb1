// RMSNorm of one row, shared by the norms of activations and of q and k heads.
#if defined(ARN_KERNELS_CPU_SIMD_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_NORM_INL_H_
#undef ARN_KERNELS_CPU_SIMD_NORM_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_NORM_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

HWY_INLINE float SumOfSquares(const float* x, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    const auto c = hn::LoadU(d, x + i + 2 * lanes), e = hn::LoadU(d, x + i + 3 * lanes);
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
    s2 = hn::MulAdd(c, c, s2);
    s3 = hn::MulAdd(e, e, s3);
  }
  for (; i < n; i += lanes) {
    const auto a = hn::LoadN(d, x + i, n - i);
    s0 = hn::MulAdd(a, a, s0);
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

// out = norm, or out += norm.
template <bool kAdd>
HWY_INLINE void NormRowInto(const float* x, const float* weight, size_t n, float epsilon,
                            float* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const auto inverse = hn::Set(d, 1.0f / std::sqrt(mean + epsilon));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto y = hn::Mul(hn::Mul(hn::LoadU(d, x + i), inverse), hn::LoadU(d, weight + i));
    if constexpr (kAdd) y = hn::Add(hn::LoadU(d, out + i), y);
    hn::StoreU(y, d, out + i);
  }
  if (i < n) {
    auto y = hn::Mul(hn::Mul(hn::LoadN(d, x + i, n - i), inverse), hn::LoadN(d, weight + i, n - i));
    if constexpr (kAdd) y = hn::Add(hn::LoadN(d, out + i, n - i), y);
    hn::StoreN(y, d, out + i, n - i);
  }
}

HWY_INLINE void NormRow(const float* x, const float* weight, size_t n, float epsilon, float* out) {
  NormRowInto<false>(x, weight, n, epsilon, out);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
