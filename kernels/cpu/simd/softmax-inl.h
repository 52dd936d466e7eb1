// The softmax that is carried along over tiles of tokens (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018), and the merging of what was carried along apart.
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

// x[n] *= factor, n a multiple of the lanes.
HWY_INLINE void MulRow(float factor, size_t n, float* x) {
  const D d;
  const auto f = hn::Set(d, factor);
  for (size_t i = 0; i < n; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, x + i);
  }
}

// Turns the scores of tokens [begin, end) of kTokens into weights, those outside into 0, and folds
// them into the running maximum and the totals [kMaxLanes]; totals and `sums` [stride] are brought
// to the new maximum. begin < end.
template <size_t kTokens>
HWY_INLINE void Softmax(float* scores, size_t begin, size_t end, float* max, float* totals,
                        float* sums, size_t stride) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -HUGE_VALF);
  V largest = lowest;
  const bool whole = begin == 0 && end == kTokens;
  if (!whole) {
    for (size_t i = 0; i < kTokens; i += kLanes) {
      const auto index = hn::Iota(di, static_cast<int32_t>(i));
      const auto visible = hn::And(hn::Ge(index, hn::Set(di, static_cast<int32_t>(begin))),
                                   hn::Lt(index, hn::Set(di, static_cast<int32_t>(end))));
      const V s = hn::LoadU(d, scores + i);
      hn::StoreU(hn::IfThenElse(hn::RebindMask(d, visible), s, lowest), d, scores + i);
    }
  }
  for (size_t i = 0; i < kTokens; i += kLanes) {
    largest = hn::Max(largest, hn::LoadU(d, scores + i));
  }
  const float tile_max = hn::ReduceMax(d, largest);
  if (tile_max > *max) {
    const float correction = ExpF32(*max - tile_max);
    *max = tile_max;
    MulRow(correction, kLanes, totals);
    MulRow(correction, stride, sums);
  }
  const V shift = hn::Set(d, *max);
  V total = hn::LoadU(d, totals);
  for (size_t i = 0; i < kTokens; i += kLanes) {
    const V p = VecExp(d, hn::Sub(hn::LoadU(d, scores + i), shift));
    hn::StoreU(p, d, scores + i);
    total = hn::Add(total, p);
  }
  hn::StoreU(total, d, totals);
}

// Folds what a query has of some tokens into what it has of those before them.
HWY_INLINE void MergePartial(const AttentionPartial& from, size_t stride, AttentionPartial to) {
  const D d;
  if (*from.max == -HUGE_VALF) return;
  float kept = 1.0f, added = 1.0f;
  if (*from.max > *to.max) {
    kept = ExpF32(*to.max - *from.max);  // 0 when there was nothing before
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
