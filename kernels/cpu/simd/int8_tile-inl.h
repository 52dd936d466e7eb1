// int8 weights in panels of 16 columns by 8 values, times a tile of rows, with AVX-512 VNNI.
//
// Layout and results are bit-identical to XNNPACK's kernels. Differences: XNNPACK's one-row kernel
// prefetches weights 0.9 KB ahead, which limits the hardware prefetcher; without that, weights
// stream up to 1.4 times as fast (Zen 4). Several rows prefetch farther ahead. Its many-row kernel
// converts signed to unsigned bytes once per panel; here they arrive converted.
// docs/decisions/0003-micro-kernels-not-operators.md.
#if defined(ARN_KERNELS_CPU_SIMD_INT8_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_INT8_TILE_INL_H_
#undef ARN_KERNELS_CPU_SIMD_INT8_TILE_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_INT8_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/cpu/simd/tile.h"
#include "kernels/cpu/simd/tile_change-inl.h"
#include "kernels/cpu/vnni.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_AVX3
namespace hn = hwy::HWY_NAMESPACE;

struct Int8Kernel {
  // Two vectors of column sums per row: 26 of 32 registers are accumulators.
  static constexpr uint32_t kRows = 13;
  static constexpr uint32_t kColumns = 16;
  static constexpr bool kAddsChange = true;
  // Contiguous values per column, and bytes of such a group in a panel.
  static constexpr size_t kGroup = 8;
  static constexpr size_t kGroupBytes = kColumns * kGroup;
  static constexpr WeightLayout kLayout = {WeightOrder::kPanels, kColumns, kGroup, 1, 0};

  using DI32 = hn::FixedTag<int32_t, 16>;
  using VI = hn::Vec<DI32>;

  static uint64_t PanelBytes(uint32_t k) {
    return 3 * kColumns * sizeof(float) + uint64_t{k / kGroup} * kGroupBytes;
  }

  // Multiplies one group of kTileRows rows. low and high: 8 columns each, two lanes per column.
  template <uint32_t kTileRows>
  static HWY_INLINE void AddGroup(const uint8_t* a, const std::byte* w, VI (&low)[kTileRows],
                                  VI (&high)[kTileRows]) {
    const hn::Repartition<uint8_t, DI32> du8;
    const hn::Repartition<int8_t, DI32> di8;
    const hn::Repartition<int64_t, DI32> di64;
    const auto* weights = reinterpret_cast<const int8_t*>(w);
    const auto left = hn::LoadU(di8, weights), right = hn::LoadU(di8, weights + 64);
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      int64_t group;
      std::memcpy(&group, a + r * kGroup, sizeof group);
      const auto values = hn::BitCast(du8, hn::Set(di64, group));
      vnni::AddProducts(values.raw, left.raw, &low[r].raw);
      vnni::AddProducts(values.raw, right.raw, &high[r].raw);
    }
  }

  template <uint32_t kTileRows>
  static void Panel(const TileArgs& args, const std::byte* w, size_t column, size_t n) {
    const DI32 di32;
    const hn::Rebind<float, DI32> df;
    const auto* a = static_cast<const uint8_t*>(args.a);
    const auto minus_sums = hn::LoadU(di32, reinterpret_cast<const int32_t*>(w));
    w += kColumns * sizeof(int32_t);
    const uint32_t groups = args.k / kGroup;
    VI low[kTileRows], high[kTileRows];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) low[r] = high[r] = hn::Zero(di32);
    uint32_t i = 0;
    if constexpr (kTileRows == 1) {
      // Separate accumulators for odd groups, to break the dependency chain.
      VI odd_low[1] = {low[0]}, odd_high[1] = {high[0]};
      for (; i + 2 <= groups; i += 2, a += 2 * kGroup, w += 2 * kGroupBytes) {
        AddGroup(a, w, low, high);
        AddGroup(a + kGroup, w + kGroupBytes, odd_low, odd_high);
      }
      low[0] = hn::Add(low[0], odd_low[0]);
      high[0] = hn::Add(high[0], odd_high[0]);
    }
    for (; i < groups; ++i, a += kTileRows * kGroup, w += kGroupBytes) {
      if constexpr (kTileRows > 1) {
        __builtin_prefetch(w + kWeightsAhead, 0, 2);
        __builtin_prefetch(w + kWeightsAhead + 64, 0, 2);
      }
      AddGroup(a, w, low, high);
    }
    const auto scales = hn::LoadU(df, reinterpret_cast<const float*>(w));
    const auto bias = hn::LoadU(df, reinterpret_cast<const float*>(w) + kColumns);
    float* c = args.c + column;
    hn::Vec<decltype(df)> y[kTileRows];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      const VI whole =
          hn::Add(hn::ConcatEven(di32, high[r], low[r]), hn::ConcatOdd(di32, high[r], low[r]));
      // Activations are offset by 128 from their zero points.
      const VI zero_point = hn::Set(di32, args.quantized[r].zero_point + 128);
      const auto sum = hn::ConvertTo(df, hn::Add(whole, hn::Mul(minus_sums, zero_point)));
      y[r] = hn::MulAdd(hn::Mul(sum, hn::Set(df, args.quantized[r].scale)), scales, bias);
      if (args.accumulate) y[r] = hn::Add(hn::LoadN(df, c + r * args.c_stride, n), y[r]);
    }
    AddChange(args, column, y);
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) hn::StoreN(y[r], df, c + r * args.c_stride, n);
  }
};

#endif
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
