// The change of an adapter in a tile of our own matmul kernels, with AVX-512 VNNI.
#if defined(ARN_KERNELS_CPU_SIMD_TILE_CHANGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_TILE_CHANGE_INL_H_
#undef ARN_KERNELS_CPU_SIMD_TILE_CHANGE_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_TILE_CHANGE_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/low_rank_pairs-inl.h"
#include "kernels/cpu/simd/tile.h"
#include "kernels/cpu/vnni.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_AVX3
namespace hn = hwy::HWY_NAMESPACE;

// A change is prefetched so many of its panels ahead, into L2.
constexpr size_t kChangePanelsAhead = 2;

// Adds the change, if any, of the panel of 16 columns that begins at `column` of the tile, to sums
// y[kRows] that are still in registers.
template <uint32_t kRows>
HWY_INLINE void AddChange(const TileArgs& args, size_t column,
                          hn::Vec<hn::FixedTag<float, kLowRankColumns>> (&y)[kRows]) {
  const hn::FixedTag<float, kLowRankColumns> df;
  const hn::Rebind<int32_t, decltype(df)> di32;
  const hn::Repartition<int8_t, decltype(df)> di8;
  if (!kAddsChanges || args.change == nullptr) return;
  const TileChange& change = *args.change;
  const size_t panel = column / kLowRankColumns;
  const std::byte* w = change.panels + panel * change.panel_bytes;
  const std::byte* next = change.next + panel * change.next_bytes;
  for (uint32_t at = 0; at < change.next_bytes; at += 64) __builtin_prefetch(next + at, 0, 2);
  hn::Vec<decltype(di32)> sums[kRows];
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) sums[r] = hn::Set(di32, change.ranks.At(r).offset);
  const auto add = [&](uint32_t k, LowRankByteVec weights) HWY_ATTR {
    weights = hn::Xor(weights, hn::Set(di8, static_cast<int8_t>(-128)));  // unsigned
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      vnni::AddProducts(weights.raw, change.ranks.At(r).values + k, &sums[r].raw);
    }
  };
  const LowRankPairs pairs(change.dtype);
  const std::byte* ahead = w + kChangePanelsAhead * change.panel_bytes;
  for (uint32_t k = 0; k < change.n_ranks; k += kLowRankInputs) {
    __builtin_prefetch(ahead, 0, 2);
    __builtin_prefetch(ahead + pairs.second, 0, 2);
    add(k, pairs.First(w, 0));
    add(k + 4, pairs.Second(w, 0));
    w += pairs.bytes;
    ahead += pairs.bytes;
  }
  const auto scale = hn::Set(df, change.scales[panel]);
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) {
    const auto factor = hn::Mul(scale, hn::Set(df, change.ranks.At(r).scale));
    y[r] = hn::MulAdd(hn::ConvertTo(df, sums[r]), factor, y[r]);
  }
}

#endif
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
