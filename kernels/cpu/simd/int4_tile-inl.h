// int4 weights in blocks of 32, times a tile of rows: with AVX-512 VNNI, and with AVX2.
//
// XNNPACK's kernel takes 8 values of a column at a time, so each sum is in two halves that have to
// be added once per block. These kernels take 4 (kr = 4): a lane is a column, an activation quad is
// broadcast, and a block ends with one conversion and one multiplication per 8 dot products. The
// order of summation and the rounding are those of XNNPACK's kernel for VNNI, with AVX2 too.
//
// XNNPACK's kernel for AVX2 multiplies words, 16 at a time. Ours multiplies bytes, 32 at a time,
// and sums a block's products in 16 bits, two products in each of 8 steps: 16 x 255 x 8 = 32,640.
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
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
namespace hn = hwy::HWY_NAMESPACE;

// The panels that both kernels read. A block's quads lie in pairs, one in the low halves of the
// bytes and one in the high halves.
struct Int4Panels {
  static constexpr uint32_t kColumns = 16;
  static constexpr WeightLayout kLayout = {WeightOrder::kPanels, kColumns, 4, 1, 2};
  static constexpr size_t kQuads = kInt4BlockSize / 4;
  static constexpr size_t kBlockBytes = kColumns * (kInt4BlockSize / 2 + sizeof(uint16_t));

  static uint64_t PanelBytes(uint32_t k) {
    return 2 * kColumns * sizeof(float) + k / kInt4BlockSize * kBlockBytes;
  }
};

#if HWY_TARGET == HWY_AVX3
struct Int4Kernel : Int4Panels {
  // Two vectors of column sums per row: 26 of 32 registers are accumulators.
  static constexpr uint32_t kRows = 13;
  static constexpr bool kAddsChange = true;

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

#if HWY_TARGET == HWY_AVX2
struct Int4PairKernel : Int4Panels {
  static constexpr bool kAddsChange = false;
  static constexpr size_t kLanes = 8, kVectors = kColumns / kLanes;
  using DI32 = hn::FixedTag<int32_t, kLanes>;
  // 8 of 16 registers are sums of pairs: with more, GCC moves some to memory.
  static constexpr uint32_t kRows = 4;

  // Returns the values in the low (half 0) or high halves of bytes.
  template <class V>
  static HWY_INLINE V Values(V table, V both, size_t half) {
    const hn::DFromV<V> d;
    const hn::Repartition<uint16_t, decltype(d)> d16;
    const V bits = half == 0 ? both : hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, both)));
    return hn::TableLookupBytes(table, hn::And(bits, hn::Set(d, 0x0F)));
  }

  template <uint32_t kTileRows>
  static void Panel(const TileArgs& args, const std::byte* panel, size_t column, size_t n) {
    const DI32 di32;
    const hn::Rebind<float, DI32> df;
    const hn::Rebind<uint16_t, DI32> du16;
    const hn::Repartition<int16_t, DI32> di16;
    const hn::Repartition<uint8_t, DI32> du8;
    const hn::Repartition<int8_t, DI32> di8;
    using VF = hn::Vec<decltype(df)>;
    using V16 = hn::Vec<decltype(di16)>;
    const auto load = [&](const std::byte* from, size_t v) HWY_ATTR {
      return hn::LoadU(df, reinterpret_cast<const float*>(from) + v * kLanes);
    };
    const uint8_t* a = static_cast<const uint8_t*>(args.a);
    const std::byte* w = panel;
    // Activations are offset by 128 from their zero points.
    VF sums[kTileRows][kVectors];
    for (uint32_t r = 0; r < kTileRows; ++r) {
      const float zero_point = static_cast<float>(args.quantized[r].zero_point + 128);
      for (size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::Mul(load(w, v), hn::Set(df, zero_point));
      }
    }
    w += kColumns * sizeof(float);
    alignas(16) static constexpr int8_t kValues[] = {0,  1,  2,  3,  4,  5,  6,  7,
                                                     -8, -7, -6, -5, -4, -3, -2, -1};
    const auto table = hn::LoadDup128(di8, kValues);
    for (uint32_t k = 0; k < args.k; k += kInt4BlockSize, w += kBlockBytes) {
      V16 pairs[kTileRows][kVectors];
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kTileRows; ++r) {
        HWY_UNROLL(2)
        for (size_t v = 0; v < kVectors; ++v) pairs[r][v] = hn::Zero(di16);
      }
      HWY_UNROLL(1)
      for (size_t pair = 0; pair < kQuads / 2; ++pair) {
        const auto* bytes = reinterpret_cast<const int8_t*>(w) + pair * 4 * kColumns;
        if constexpr (kTileRows > 1) __builtin_prefetch(bytes + kWeightsAhead, 0, 2);
        HWY_UNROLL(2)
        for (size_t half = 0; half < 2; ++half) {
          hn::Vec<decltype(di8)> values[kVectors];
          HWY_UNROLL(2)
          for (size_t v = 0; v < kVectors; ++v) {
            values[v] = Values(table, hn::LoadU(di8, bytes + v * 4 * kLanes), half);
          }
          HWY_UNROLL(16)
          for (uint32_t r = 0; r < kTileRows; ++r, a += 4) {
            int32_t quad;
            std::memcpy(&quad, a, sizeof quad);
            const auto of_row = hn::BitCast(du8, hn::Set(di32, quad));
            HWY_UNROLL(2)
            for (size_t v = 0; v < kVectors; ++v) {
              pairs[r][v] =
                  hn::Add(pairs[r][v], hn::SatWidenMulPairwiseAdd(di16, of_row, values[v]));
              // Otherwise GCC adds the products of several quads first, which takes registers.
              asm("" : "+v"(pairs[r][v].raw));
            }
          }
        }
      }
      // Scales are those of values times 16.
      const auto sixteen = hn::Set(di16, 16);
      const auto* scales = reinterpret_cast<const uint16_t*>(w + kColumns * (kInt4BlockSize / 2));
      HWY_UNROLL(2)
      for (size_t v = 0; v < kVectors; ++v) {
        const auto bits = hn::PromoteTo(di32, hn::LoadU(du16, scales + v * kLanes));
        const VF scale = hn::BitCast(df, hn::ShiftLeft<16>(bits));
        HWY_UNROLL(16)
        for (uint32_t r = 0; r < kTileRows; ++r) {
          const auto dots = hn::WidenMulPairwiseAdd(di32, pairs[r][v], sixteen);
          sums[r][v] = hn::MulAdd(hn::ConvertTo(df, dots), scale, sums[r][v]);
        }
      }
    }
    for (uint32_t r = 0; r < kTileRows; ++r) {
      const VF scale = hn::Set(df, args.quantized[r].scale);
      for (size_t v = 0; v < kVectors && v * kLanes < n; ++v) {
        float* c = args.c + column + r * args.c_stride + v * kLanes;
        VF y = hn::Add(hn::Mul(sums[r][v], scale), load(w, v));
        if (args.accumulate) y = hn::Add(y, hn::LoadN(df, c, n - v * kLanes));
        hn::StoreN(y, df, c, n - v * kLanes);
      }
    }
  }
};
#endif

#endif
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
