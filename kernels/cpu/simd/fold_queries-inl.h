// Applies the ranges of keys to queries: q . (least + scale * value) = q . least + (q * scale) .
// value. The folded queries, q * scale, are floats, or integers for Int8Dot.
#if defined(ARN_KERNELS_CPU_SIMD_FOLD_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_FOLD_QUERIES_INL_H_
#undef ARN_KERNELS_CPU_SIMD_FOLD_QUERIES_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_FOLD_QUERIES_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/kv_ranges-inl.h"
#include "kernels/cpu/simd/kv_rows-inl.h"
#include "kernels/cpu/simd/quantize_queries-inl.h"
#include "kernels/cpu/simd/reduce_four-inl.h"
#include "platform/base/arith.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// folded[stride] = q * scale. Returns q . least.
HWY_INLINE float FoldQuery(const float* q, const float* scale, const float* least, size_t stride,
                           float* folded) {
  const D d;
  V sum = hn::Zero(d);
  for (size_t i = 0; i < stride; i += kLanes) {
    const V x = hn::LoadU(d, q + i);
    hn::StoreU(hn::Mul(x, hn::LoadU(d, scale + i)), d, folded + i);
    sum = hn::MulAdd(x, hn::LoadU(d, least + i), sum);
  }
  return hn::ReduceSum(d, sum);
}

// Queries that share each load of the ranges: at most 4.
#if defined(ARN_SMALL_CODE)
constexpr uint32_t kFoldedTogether = 1;
#else
constexpr uint32_t kFoldedTogether = 4;
#endif

// Scales and sums of kFoldedTogether folded queries.
struct FoldedQueries {
  QueryScales scales;
  alignas(16) float least[4];  // q . least
};

// Folds kQueries queries, rows of `stride` floats (a multiple of kLanes), into `folded`. ranges: of
// the first `dim` channels.
template <uint32_t kQueries>
HWY_INLINE void FoldTogether(const float* q, size_t stride, uint32_t dim, const uint16_t* ranges,
                             float* folded, FoldedQueries* out) {
  const D d;
  V sums[4];
  Magnitudes largest[4];
  for (V& sum : sums) sum = hn::Zero(d);
  ForRanges(ranges, dim, [&](size_t at, V scale, V least) HWY_ATTR {
    for (uint32_t i = 0; i < kQueries; ++i) {
      const V x = hn::LoadU(d, q + i * stride + at), y = hn::Mul(x, scale);
      hn::StoreU(y, d, folded + i * stride + at);
      largest[i].Add(y);
      sums[i] = hn::MulAdd(x, least, sums[i]);
    }
  });
  for (size_t at = AlignUp(dim, kLanes); at < stride; at += kLanes) {
    for (uint32_t i = 0; i < kQueries; ++i) hn::StoreU(hn::Zero(d), d, folded + i * stride + at);
  }
  const hn::BlockDFromD<D> d4;
  const auto least = ReduceFour(sums, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  hn::Store(least, d4, out->least);
  out->scales = QueryScales(largest);
}

// Tokens [begin, begin + n) of a tile, which share the ranges of their channels.
struct KeyRange {
  uint32_t begin, n;
  const uint16_t* ranges;
};

// Largest number of queries times ranges.
constexpr uint32_t kFoldedRows = kDotRowQueries * kDotBlocks;

// Folds n_queries queries with each of n_ranges ranges and quantises them to 16 bits: q * scale =
// factor * integer. All rows have `stride` numbers. If a folded query is not finite its factor is
// NaN, and its integers may be anything.
struct QueryFolder {
  const float* q;
  uint32_t n_queries, dim;
  size_t stride;
  float* scratch;  // n_ranges * n_queries rows
  // The integers, row n_queries * range + query: words, or if they are null two planes of signed
  // bytes, 256 * high + low.
  int16_t* words;
  uint8_t *high, *low;
  // By query and block of the tile.
  float *factors, *least;

  HWY_INLINE void Fold(const KeyRange* ranges, uint32_t n_ranges) const {
    // The maxima of the first queries are awaited while the next are folded.
    FoldedQueries folded[kMaxFolded];
    FoldedQueries* next = folded;
    for (uint32_t r = 0; r < n_ranges; ++r) {
      for (uint32_t i = 0; i < n_queries; i += kFoldedTogether, ++next) {
        const float* from = q + i * stride;
        float* to = scratch + (r * n_queries + i) * stride;
        const uint32_t n = Min(n_queries - i, kFoldedTogether);
        const uint16_t* of = ranges[r].ranges;
#if !defined(ARN_SMALL_CODE)
        if (n == 2) FoldTogether<2>(from, stride, dim, of, to, next);
        if (n == 3) FoldTogether<3>(from, stride, dim, of, to, next);
        if (n == 4) FoldTogether<4>(from, stride, dim, of, to, next);
#endif
        if (n == 1) FoldTogether<1>(from, stride, dim, of, to, next);
      }
    }
    next = folded;
    for (uint32_t r = 0; r < n_ranges; ++r) {
      const uint32_t begin = ranges[r].begin / kDotBlock;
      const uint32_t end = begin + static_cast<uint32_t>(CeilDiv(ranges[r].n, kDotBlock));
      for (uint32_t i = 0; i < n_queries; ++i) {
        const FoldedQueries& of = next[i / kFoldedTogether];
        const uint32_t at = i % kFoldedTogether;
        for (uint32_t b = begin; b < end; ++b) {
          factors[i * kDotBlocks + b] = of.scales.factors[at];
          least[i * kDotBlocks + b] = of.least[at];
        }
        Quantize((r * n_queries + i) * stride, of.scales.inverse[at]);
      }
      next += CeilDiv(n_queries, kFoldedTogether);
    }
  }

 private:
  static constexpr uint32_t kMaxFolded = kFoldedRows / kFoldedTogether;

  HWY_INLINE void Quantize(size_t row, float inverse) const {
    const RoundedQuery rounded(scratch + row, inverse);
    if (!HWY_ARCH_X86 || words == nullptr) {
      return StorePlanes(stride, rounded, high + row, low + row);
    }
    StoreWords(
        stride, [&](size_t at) HWY_ATTR { return rounded.Integer(at); }, words + row);
  }
};

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
