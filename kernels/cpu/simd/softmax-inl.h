// Online softmax over tiles of tokens (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018), and the merging of partial results.
#if defined(ARN_KERNELS_CPU_SIMD_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_SOFTMAX_INL_H_
#undef ARN_KERNELS_CPU_SIMD_SOFTMAX_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/cpu/simd/kv_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[n] = x[n] * factor; out may be x.
HWY_INLINE void ScaleRow(const float* x, float factor, size_t n, float* out) {
  const D d;
  const auto f = hn::Set(d, factor);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, out + i);
  }
  if (i < n) hn::StoreN(hn::Mul(hn::LoadN(d, x + i, n - i), f), d, out + i, n - i);
}

// Scores of a tile's tokens, later their weights.
template <size_t kTokens>
struct TileScores {
  static constexpr size_t kVectors = kTokens / kLanes;
  V v[kVectors];

  HWY_INLINE void Load(const float* from) {
    const D d;
    for (size_t i = 0; i < kVectors; ++i) v[i] = hn::LoadU(d, from + i * kLanes);
  }
  HWY_INLINE void Store(float* to) const {
    const D d;
    for (size_t i = 0; i < kVectors; ++i) hn::StoreU(v[i], d, to + i * kLanes);
  }
  HWY_INLINE V LargestByLane() const {
    V largest = v[0];
    for (size_t i = 1; i < kVectors; ++i) largest = hn::Max(largest, v[i]);
    return largest;
  }
  HWY_INLINE float Largest() const { return hn::ReduceMax(D(), LargestByLane()); }
  // Masks tokens outside [begin, end).
  HWY_INLINE void Hide(size_t begin, size_t end) {
    if (begin == 0 && end == kTokens) return;
    const D d;
    const hn::RebindToSigned<D> di;
    const V lowest = hn::Set(d, -HUGE_VALF);
    for (size_t i = 0; i < kVectors; ++i) {
      const auto index = hn::Iota(di, static_cast<int32_t>(i * kLanes));
      const auto visible = hn::And(hn::Ge(index, hn::Set(di, static_cast<int32_t>(begin))),
                                   hn::Lt(index, hn::Set(di, static_cast<int32_t>(end))));
      v[i] = hn::IfThenElse(hn::RebindMask(d, visible), v[i], lowest);
    }
  }
};

// Turns scores into weights and updates the running maximum and the totals [kMaxLanes]. Rescales
// totals and `sums` [stride] to the new maximum. REQUIRES: at least one token is not masked.
template <size_t kTokens>
HWY_INLINE void Softmax(TileScores<kTokens>* scores, float* max, float* totals, float* sums,
                        size_t stride) {
  const D d;
  const float tile_max = scores->Largest();
  if (tile_max > *max) {
    const float correction = ExpF32(*max - tile_max);
    *max = tile_max;
    ScaleRow(totals, correction, kLanes, totals);
    ScaleRow(sums, correction, stride, sums);
  }
  const V shift = hn::Set(d, *max);
  V total = hn::LoadU(d, totals);
  for (V& s : scores->v) {
    s = VecExp(d, hn::Sub(s, shift));
    total = hn::Add(total, s);
  }
  hn::StoreU(total, d, totals);
}

// Merges a query's partial result over some tokens into its result over the tokens before them.
HWY_INLINE void MergePartial(const AttentionPartial& from, size_t stride, AttentionPartial to) {
  const D d;
  if (*from.max == -HUGE_VALF) return;
  float kept = 1.0f, added = 1.0f;
  if (*from.max > *to.max) {
    kept = ExpF32(*to.max - *from.max);  // 0 if there was nothing before
    *to.max = *from.max;
  } else {
    added = ExpF32(*from.max - *to.max);
  }
  *to.total = *to.total * kept + *from.total * added;
  const auto k = hn::Set(d, kept), a = hn::Set(d, added);
  for (size_t i = 0; i < stride; i += kLanes) {
    const auto mine = hn::Mul(hn::LoadU(d, to.sums + i), k);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, from.sums + i), a, mine), d, to.sums + i);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
