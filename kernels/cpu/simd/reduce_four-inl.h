// Reduces the lanes of four vectors at once: in half the instructions of four reductions, which
// also wait for each other less.
#if defined(ARN_KERNELS_CPU_SIMD_REDUCE_FOUR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_REDUCE_FOUR_INL_H_
#undef ARN_KERNELS_CPU_SIMD_REDUCE_FOUR_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_REDUCE_FOUR_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Reduces four vectors: lane i of the result is all lanes of v[i], combined by op.
template <class V4, class Op>
HWY_INLINE hn::Vec<hn::BlockDFromD<hn::DFromV<V4>>> ReduceFour(const V4 (&v)[4], const Op& op) {
  if constexpr (HWY_MAX_LANES_V(V4) > 4) {
    const hn::Half<hn::DFromV<V4>> half;
    hn::Vec<decltype(half)> h[4];
    for (int i = 0; i < 4; ++i) h[i] = op(hn::LowerHalf(half, v[i]), hn::UpperHalf(half, v[i]));
    return ReduceFour(h, op);
  } else {
    const hn::DFromV<V4> d;
    const hn::RepartitionToWide<hn::RebindToUnsigned<decltype(d)>> d64;  // ARMv7 has no doubles
    hn::Vec<decltype(d64)> pairs[2];
    for (int i = 0; i < 2; ++i) {
      const auto a = v[2 * i], b = v[2 * i + 1];
      pairs[i] = hn::BitCast(d64, op(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    }
    return op(hn::BitCast(d, hn::InterleaveLower(d64, pairs[0], pairs[1])),
              hn::BitCast(d, hn::InterleaveUpper(d64, pairs[0], pairs[1])));
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
