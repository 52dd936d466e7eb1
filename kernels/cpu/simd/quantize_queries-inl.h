// Rounds queries to 16 bits for Int8Dot: x = factor * integer.
#if defined(ARN_KERNELS_CPU_SIMD_QUANTIZE_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_QUANTIZE_QUERIES_INL_H_
#undef ARN_KERNELS_CPU_SIMD_QUANTIZE_QUERIES_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_QUANTIZE_QUERIES_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/kv_rows-inl.h"
#include "kernels/cpu/simd/reduce_four-inl.h"
#include "kernels/math/round.h"
#include "platform/base/arith.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The largest magnitude by lane. As integers, magnitudes keep their order, and non-finite values
// are the largest.
struct Magnitudes {
  hn::Vec<hn::RebindToSigned<D>> largest;

  HWY_INLINE Magnitudes() : largest(hn::Zero(hn::RebindToSigned<D>())) {}
  HWY_INLINE void Add(V x) {
    const hn::RebindToSigned<D> di;
    const auto size_bits = hn::Set(di, 0x7FFFFFFF);
    largest = hn::Max(largest, hn::And(hn::BitCast(di, x), size_bits));
  }
};

// Scales of four queries. The factor is NaN if a query is not finite; its integers may then be
// anything.
struct QueryScales {
  alignas(16) float inverse[4];  // integer = x * inverse
  alignas(16) float factors[4];  // x = factor * integer

  QueryScales() = default;
  explicit HWY_INLINE QueryScales(const Magnitudes (&of)[4]) {
    const hn::BlockDFromD<D> d4;
    const hn::Vec<hn::RebindToSigned<D>> by_lane[4] = {of[0].largest, of[1].largest, of[2].largest,
                                                       of[3].largest};
    const auto max =
        hn::BitCast(d4, ReduceFour(by_lane, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); }));
    constexpr float kLargest = 127 * 256 + 127;
    const auto most = hn::Set(d4, kLargest);
    const auto is_finite = hn::Lt(max, hn::Set(d4, HUGE_VALF));
    // Also zeros if the quotient would overflow.
    const auto is_some = hn::And(is_finite, hn::Gt(max, hn::Set(d4, kLargest / 1e38f)));
    const auto factor = hn::IfThenElseZero(is_some, hn::Div(max, most));
    hn::Store(hn::IfThenElseZero(is_some, hn::Div(most, max)), d4, inverse);
    hn::Store(hn::IfThenElse(is_finite, factor, hn::Set(d4, std::nanf(""))), d4, factors);
  }
};

// The integers of a query.
class RoundedQuery {
 public:
  using I = hn::Vec<hn::RebindToSigned<D>>;
  HWY_INLINE RoundedQuery(const float* x, float inverse)
      : x_(x), inverse_(hn::Set(D(), inverse)), round_(hn::Set(D(), kRoundToInteger)) {}

  // Returns those of elements [i, i + kLanes), in the low 16 bits.
  HWY_INLINE I operator()(size_t i) const {
    return hn::BitCast(hn::RebindToSigned<D>(),
                       hn::MulAdd(hn::LoadU(D(), x_ + i), inverse_, round_));
  }
  HWY_INLINE I Integer(size_t i) const {
    return hn::Sub((*this)(i), hn::BitCast(hn::RebindToSigned<D>(), round_));
  }

 private:
  const float* x_;
  V inverse_, round_;
};

// Stores the low 16 bits of stride integers, as two planes of signed bytes; integer(i) has
// [i, i + kLanes).
template <typename Integer>
HWY_INLINE void StorePlanes(size_t stride, const Integer& integer, uint8_t* high, uint8_t* low) {
  const hn::Repartition<uint16_t, D> d16;
  const hn::Repartition<uint8_t, D> d8;
  constexpr size_t kFour = 4 * kLanes;
  // Four vectors at a time; `last` is the last there is.
  const auto four = [&](size_t i, size_t last, uint8_t* to_high, uint8_t* to_low) HWY_ATTR {
    const auto at = [&](size_t v)
                        HWY_ATTR { return hn::BitCast(d16, integer(Min(i + v * kLanes, last))); };
    const auto a = hn::ConcatEven(d16, at(1), at(0)), b = hn::ConcatEven(d16, at(3), at(2));
    const auto half = hn::Set(d16, uint16_t{128});
    const auto upper_a = hn::BitCast(d8, hn::Add(a, half));
    const auto upper_b = hn::BitCast(d8, hn::Add(b, half));
    hn::StoreU(hn::ConcatOdd(d8, upper_b, upper_a), d8, to_high);
    hn::StoreU(hn::ConcatEven(d8, hn::BitCast(d8, b), hn::BitCast(d8, a)), d8, to_low);
  };
  size_t i = 0;
  for (; i + kFour <= stride; i += kFour) four(i, stride - kLanes, high + i, low + i);
  if (i < stride) {
    uint8_t planes[2][kFour];
    four(i, stride - kLanes, planes[0], planes[1]);
    std::memcpy(high + i, planes[0], stride - i);
    std::memcpy(low + i, planes[1], stride - i);
  }
}

// The same, as words.
template <typename Integer>
HWY_INLINE void StoreWords(size_t stride, const Integer& integer, int16_t* words) {
  const hn::Repartition<int16_t, D> d16;
  const hn::Rebind<int16_t, D> half;
  size_t i = 0;
  for (; i + 2 * kLanes <= stride; i += 2 * kLanes) {
    hn::StoreU(hn::OrderedDemote2To(d16, integer(i), integer(i + kLanes)), d16, words + i);
  }
  if (i < stride) hn::StoreU(hn::DemoteTo(half, integer(i)), half, words + i);
}

// Sums of the planes of four queries.
struct PlaneSums {
  hn::Vec<hn::RebindToSigned<D>> integers[4], low[4];

  HWY_INLINE PlaneSums() {
    const hn::RebindToSigned<D> di;
    for (uint32_t i = 0; i < 4; ++i) integers[i] = low[i] = hn::Zero(di);
  }
  HWY_INLINE void Add(uint32_t i, hn::Vec<hn::RebindToSigned<D>> x) {
    integers[i] = hn::Add(integers[i], x);
    low[i] = hn::Add(low[i], hn::ShiftRight<24>(hn::ShiftLeft<24>(x)));
  }
  // Stores those of the first n queries.
  HWY_INLINE void Store(uint32_t n, int32_t* high_sums, int32_t* low_sums) const {
    const hn::BlockDFromD<hn::RebindToSigned<D>> d4;
    const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
    const auto of_low = ReduceFour(low, add);
    hn::StoreN(of_low, d4, low_sums, n);
    hn::StoreN(hn::ShiftRight<8>(hn::Sub(ReduceFour(integers, add), of_low)), d4, high_sums, n);
  }
};

// Rounds n <= 4 queries x[n, stride] to two planes of signed bytes high, low [n, stride]: x =
// factor
// * (256 * high + low). Writes the sums of each plane and the factors, [n] each. stride is a
// multiple of kMaxLanes; x is zero-padded after the head's channels.
HWY_INLINE void QuantizeQueries(const float* x, size_t stride, uint32_t n, int32_t* high,
                                int32_t* low, int32_t* high_sums, int32_t* low_sums,
                                float* factors) {
  const D d;
  Magnitudes largest[4];
  for (uint32_t q = 0; q < n; ++q) {
    for (size_t i = 0; i < stride; i += kLanes) largest[q].Add(hn::LoadU(d, x + q * stride + i));
  }
  const QueryScales scales(largest);
  std::memcpy(factors, scales.factors, n * sizeof(float));
  PlaneSums sums;
  for (uint32_t q = 0; q < n; ++q) {
    const RoundedQuery rounded(x + q * stride, scales.inverse[q]);
    StorePlanes(stride, rounded, reinterpret_cast<uint8_t*>(high) + q * stride,
                reinterpret_cast<uint8_t*>(low) + q * stride);
    for (size_t i = 0; i < stride; i += kLanes) sums.Add(q, rounded.Integer(i));
  }
  sums.Store(n, high_sums, low_sums);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
