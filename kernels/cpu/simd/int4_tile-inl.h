// int4 weights in blocks of 32, times a tile of rows, with AVX-512 VNNI.
//
// XNNPACK's kernel takes 8 values of a column at a time, so each sum is in two halves that have to
// be added once per block. This kernel takes 4 (kr = 4): a lane is a column, an activation quad is
// broadcast, and a block ends with one conversion and one multiplication per 8 dot products. The
// order of summation and the rounding are XNNPACK's.
#if defined(ARN_KERNELS_CPU_SIMD_INT4_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_INT4_TILE_INL_H_
#undef ARN_KERNELS_CPU_SIMD_INT4_TILE_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_INT4_TILE_INL_H_
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

struct Int4Kernel {
  // Two vectors of column sums per row: 26 of 32 registers are accumulators.
  static constexpr uint32_t kRows = 13;
  static constexpr uint32_t kColumns = 16;
  static constexpr WeightLayout kLayout = {WeightOrder::kPanels, kColumns, 4, 1, 2};
  static constexpr size_t kQuads = kInt4BlockSize / 4;
  static constexpr size_t kBlockBytes = kColumns * (kInt4BlockSize / 2 + sizeof(uint16_t));

  static uint64_t PanelBytes(uint32_t k) {
    return 2 * kColumns * sizeof(float) + k / kInt4BlockSize * kBlockBytes;
  }

  template <uint32_t kTileRows>
  static void Panel(const TileArgs& args, const std::byte* panel, size_t column, size_t n) {
    const hn::FixedTag<float, kColumns> df;
    const hn::RebindToSigned<decltype(df)> di32;
    const hn::Rebind<uint16_t, decltype(df)> du16;
    const hn::Repartition<uint8_t, decltype(df)> du8;
    const hn::RebindToSigned<decltype(du8)> di8;
    using VF = hn::Vec<decltype(df)>;
    using VI = hn::Vec<decltype(di32)>;
    const auto load = [&](const std::byte* from)
                          HWY_ATTR { return hn::LoadU(df, reinterpret_cast<const float*>(from)); };
    const uint8_t* a = static_cast<const uint8_t*>(args.a);
    const std::byte* w = panel;
    // Activations are offset by 128 from their zero points.
    const VF minus_sums = load(w);
    w += kColumns * sizeof(float);
    VF sums[kTileRows];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      const float zero_point = static_cast<float>(args.quantized[r].zero_point + 128);
      sums[r] = hn::Mul(minus_sums, hn::Set(df, zero_point));
    }
    const auto mask = hn::Set(du8, 0xF0);
    for (uint32_t k = 0; k < args.k; k += kInt4BlockSize, w += kBlockBytes) {
      VI dots[kTileRows];
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kTileRows; ++r) dots[r] = hn::Zero(di32);
      HWY_UNROLL(4)
      for (size_t pair = 0; pair < kQuads / 2; ++pair) {
        if constexpr (kTileRows > 1) {
          __builtin_prefetch(w + kWeightsAhead + pair * 4 * kColumns, 0, 2);
        }
        const auto both = hn::LoadU(du8, reinterpret_cast<const uint8_t*>(w) + pair * 4 * kColumns);
        // Signed values, times 16.
        const auto first =
            hn::And(hn::BitCast(du8, hn::ShiftLeft<4>(hn::BitCast(di32, both))), mask);
        const auto second = hn::And(both, mask);
        HWY_UNROLL(2)
        for (size_t half = 0; half < 2; ++half) {
          const auto values = hn::BitCast(di8, half == 0 ? first : second);
          HWY_UNROLL(16)
          for (uint32_t r = 0; r < kTileRows; ++r, a += 4) {
            int32_t quad;
            std::memcpy(&quad, a, sizeof quad);
            vnni::AddProducts(hn::BitCast(du8, hn::Set(di32, quad)).raw, values.raw, &dots[r].raw);
          }
        }
      }
      const auto scale_bits =
          hn::LoadU(du16, reinterpret_cast<const uint16_t*>(w + kColumns * (kInt4BlockSize / 2)));
      const VF scales = hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(di32, scale_bits)));
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kTileRows; ++r) {
        sums[r] = hn::MulAdd(hn::ConvertTo(df, dots[r]), scales, sums[r]);
      }
    }
    const VF bias = load(w);
    float* c = args.c + column;
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      sums[r] = hn::Add(hn::Mul(sums[r], hn::Set(df, args.quantized[r].scale)), bias);
      if (args.accumulate) sums[r] = hn::Add(sums[r], hn::LoadN(df, c + r * args.c_stride, n));
    }
    AddChange(args, column, sums);
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kTileRows; ++r) hn::StoreN(sums[r], df, c + r * args.c_stride, n);
  }
};

#endif
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
