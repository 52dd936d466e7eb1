// Sums of products of 16-bit numbers, and queries and weights as such numbers.
#if defined(ARN_KERNELS_CPU_SIMD_WORD_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_WORD_DOT_INL_H_
#undef ARN_KERNELS_CPU_SIMD_WORD_DOT_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_WORD_DOT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/cpu/int8_dot/int8_dot.h"

// x86 only: NEON's smlal has half the throughput of its float multiply-add.
#undef ARN_HAS_WORD_DOT
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ARN_HAS_WORD_DOT 1
#else
#define ARN_HAS_WORD_DOT 0
#endif

#if ARN_HAS_WORD_DOT
HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// 512-bit vectors would be wider than most ranges of values.
using D8 = hn::CappedTag<int8_t, 32>;
using D8Block = hn::CappedTag<int8_t, 16>;
using D16 = hn::Repartition<int16_t, D8>;
using D32 = hn::Repartition<int32_t, D8>;
using Words = hn::Vec<D16>;
constexpr uint32_t kWords = HWY_MAX_LANES_D(D16);
constexpr uint32_t kSums = HWY_MAX_LANES_D(D32);
constexpr uint32_t kGroup = 4;  // queries per pass
// Sums that stay in registers: SSE4 and AVX2 have 16.
constexpr uint32_t kMaxSums = HWY_TARGET == HWY_AVX3 ? 16 : 8;

template <class D>
using Of16 = hn::Repartition<int16_t, D>;
template <class D>
using Of32 = hn::Repartition<int32_t, D>;

// Sums of products of words.
template <class D>
struct Sum {
  using Vector = hn::Vec<Of32<D>>;
  Vector even, odd;  // adds pairs at once and leaves `odd` zero

  HWY_INLINE void Clear() { even = odd = hn::Zero(Of32<D>()); }
  HWY_INLINE void Add(hn::Vec<Of16<D>> a, hn::Vec<Of16<D>> b) {
    even = hn::ReorderWidenMulAccumulate(Of32<D>(), a, b, even, odd);
  }
  // The same. With 16 registers GCC must not add the products of several calls first: it would
  // spill them.
  HWY_INLINE void AddInOrder(hn::Vec<Of16<D>> a, hn::Vec<Of16<D>> b) {
    Add(a, b);
#if HWY_TARGET != HWY_AVX3
    asm("" : "+v"(even.raw));
#endif
  }
  // Lane i is the sum over words 2 i and 2 i + 1.
  HWY_INLINE Vector Pairs() const { return hn::RearrangeToOddPlusEven(even, odd); }
};

// Repeats a pair of words.
template <class D>
HWY_INLINE hn::Vec<Of16<D>> Pair(const int16_t* words) {
  int32_t pair;
  std::memcpy(&pair, words, sizeof pair);
  return hn::BitCast(Of16<D>(), hn::Set(Of32<D>(), pair));
}

// Joins the planes of n signed words; n is a multiple of 16.
HWY_INLINE void JoinQuery(const int32_t* high, const int32_t* low, size_t n, int16_t* out) {
  const D16 d;
  const hn::Rebind<int8_t, D16> half;
  const auto* h = reinterpret_cast<const int8_t*>(high);
  const auto* l = reinterpret_cast<const int8_t*>(low);
  for (size_t i = 0; i < n; i += kWords) {
    const auto upper = hn::ShiftLeft<8>(hn::PromoteTo(d, hn::LoadU(half, h + i)));
    hn::StoreU(hn::Add(upper, hn::PromoteTo(d, hn::LoadU(half, l + i))), d, out + i);
  }
}

// Joins the planes of queries [first, first + n), `stride` words apart.
HWY_INLINE void JoinQueries(const DotQueries& queries, uint32_t first, uint32_t n, uint32_t dim,
                            size_t stride, int16_t* out) {
  for (uint32_t q = 0; q < n; ++q) {
    const size_t at = (first + q) * queries.stride;
    JoinQuery(queries.high + at, queries.low + at, DotValueWidth(dim), out + q * stride);
  }
}

// Joins the planes of the weights of queries [first, first + n), for 2 * n_pairs tokens.
HWY_INLINE void JoinWeights(const DotWeights& weights, uint32_t first, uint32_t n, uint32_t n_pairs,
                            int16_t* out) {
  const D8Block d;
  const auto* high = reinterpret_cast<const int8_t*>(weights.high) + size_t{first} * kDotTokens;
  const auto* low = reinterpret_cast<const int8_t*>(weights.low) + size_t{first} * kDotTokens;
  auto* bytes = reinterpret_cast<int8_t*>(out);
  for (uint32_t q = 0; q < n; ++q) {
    for (size_t t = 0; t < 2 * n_pairs; t += kDotBlock) {
      const size_t at = q * kDotTokens + t;
      const auto l = hn::LoadU(d, low + at), h = hn::LoadU(d, high + at);
      hn::StoreU(hn::InterleaveLower(d, l, h), d, bytes + 2 * at);
      hn::StoreU(hn::InterleaveUpper(d, l, h), d, bytes + 2 * at + kDotBlock);
    }
  }
}

// out += factor * sum.
template <class V>
HWY_INLINE void AddTo(V sum, float factor, float* out) {
  const hn::Repartition<float, hn::DFromV<V>> d;
  hn::StoreU(hn::MulAdd(hn::ConvertTo(d, sum), hn::Set(d, factor), hn::LoadU(d, out)), d, out);
}
}  // namespace
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // ARN_HAS_WORD_DOT

#endif  // per-target include guard
