// f16 and bf16 weights in panels, times a tile of rows. A lane is a column: a weight is widened
// once for all rows of a tile, and an activation is broadcast. Sums are always in the order of k,
// so a row gives the same bits in any tile.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/simd/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/half_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Columns per panel: 64 bytes of weights per k (kF16) or 128 per pair of k (kBf16).
constexpr size_t kColumns = 32;
constexpr size_t kLanes = HWY_MAX_LANES_D(hn::ScalableTag<float>);
constexpr size_t kPanelVectors = kColumns / kLanes;

// A tile's accumulators fill the registers: 32 of them, or 16 with SSE and AVX2. A panel wider than
// the tile is processed in parts, by then from cache. A single row takes the whole panel at once,
// because it streams from memory. Each row count is separate code.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 && !defined(ARN_SMALL_CODE)
constexpr uint32_t kTileRows = 13;
constexpr size_t kTileVectors = 2;
#elif defined(ARN_SMALL_CODE)
constexpr uint32_t kTileRows = 3;
constexpr size_t kTileVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr uint32_t kTileRows = 6;
constexpr size_t kTileVectors = 4;
#else
constexpr uint32_t kTileRows = 6;
constexpr size_t kTileVectors = 2;
#endif

// Values of k per block. Each block sums from zero, so rounding errors do not grow with k, and a
// tile's slice of its rows stays in L1.
constexpr uint32_t kBlock = 256;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

// sums[r][v] += activation of row r times the widened weights of vector v.
template <uint32_t kRows, size_t kVectors>
HWY_INLINE void MultiplyAdd(const float* a, const VF (&w)[kVectors], VF (&sums)[kRows][kVectors]) {
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) {
    const VF x = hn::Set(DF(), a[r]);
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, w[v], sums[r][v]);
  }
}

// f16: kr = 1.
template <uint32_t kRows, size_t kVectors>
HWY_INLINE void Sum(hwy::float16_t, const float* a, const uint16_t* w, uint32_t k,
                    VF (&sums)[kRows][kVectors]) {
  const DF d;
  const hn::Rebind<hwy::float16_t, DF> dh;
  for (uint32_t i = 0; i < k; ++i, a += kRows, w += kColumns) {
    VF wide[kVectors];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      wide[v] =
          hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(w + v * kLanes)));
    }
    MultiplyAdd(a, wide, sums);
  }
}

// bf16: kr = 2. A 32-bit lane has the weights of k (low) and k + 1 (high).
template <uint32_t kRows, size_t kVectors>
HWY_INLINE void Sum(hwy::bfloat16_t, const float* a, const uint16_t* w, uint32_t k,
                    VF (&sums)[kRows][kVectors]) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const auto high = hn::Set(du, 0xFFFF0000u);
  for (uint32_t i = 0; i < k; i += 2, a += 2 * kRows, w += 2 * kColumns) {
    VF first[kVectors], second[kVectors];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      const auto pair = hn::LoadU(du, reinterpret_cast<const uint32_t*>(w) + v * kLanes);
      first[v] = hn::BitCast(d, hn::ShiftLeft<16>(pair));
      second[v] = hn::BitCast(d, hn::And(pair, high));
    }
    MultiplyAdd(a, first, sums);
    if (i + 1 < k) MultiplyAdd(a + kRows, second, sums);
  }
}

// Computes columns [first, first + kVectors * kLanes) of a panel with n valid columns.
template <typename T, uint32_t kRows, size_t kVectors>
void Part(const TileArgs& args, const std::byte* panel, size_t first, size_t n, float* c) {
  const DF d;
  VF totals[kRows][kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    const VF bias = hn::LoadU(d, reinterpret_cast<const float*>(panel) + first + v * kLanes);
    for (uint32_t r = 0; r < kRows; ++r) totals[r][v] = bias;
  }
  constexpr size_t kKr = hwy::IsSame<T, hwy::bfloat16_t>() ? 2 : 1;
  const auto* w = reinterpret_cast<const uint16_t*>(panel + kColumns * sizeof(float)) + first * kKr;
  const auto* a = static_cast<const float*>(args.a);
  for (uint32_t k = 0; k < args.k; k += kBlock, a += kBlock * kRows, w += kBlock * kColumns) {
    VF sums[kRows][kVectors];
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    Sum(T(), a, w, HWY_MIN(kBlock, args.k - k), sums);
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) totals[r][v] = hn::Add(totals[r][v], sums[r][v]);
    }
  }
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = first + v * kLanes;
      if (at >= n) break;
      float* to = c + r * args.c_stride + at;
      VF y = totals[r][v];
      if (at + kLanes <= n) {
        if (args.accumulate) y = hn::Add(y, hn::LoadU(d, to));
        hn::StoreU(y, d, to);
      } else {
        if (args.accumulate) y = hn::Add(y, hn::LoadN(d, to, n - at));
        hn::StoreN(y, d, to, n - at);
      }
    }
  }
}

template <typename T, uint32_t kRows>
void Panels(const TileArgs& args) {
  constexpr size_t kVectors = kRows == 1 ? kPanelVectors : kTileVectors;
  const uint64_t k = hwy::IsSame<T, hwy::bfloat16_t>() ? hwy::RoundUpTo(args.k, 2) : args.k;
  const uint64_t panel_bytes = kColumns * (sizeof(float) + k * sizeof(uint16_t));
  const std::byte* panel = args.panels;
  for (uint32_t column = 0; column < args.n; column += kColumns, panel += panel_bytes) {
    const size_t n = HWY_MIN(kColumns, args.n - column);
    for (size_t first = 0; first < n; first += kVectors * kLanes) {
      Part<T, kRows, kVectors>(args, panel, first, n, args.c + column);
    }
  }
}

template <typename T, uint32_t kRows>
void Choose(const TileArgs& args) {
  if constexpr (kRows < kTileRows) {
    if (args.rows > kRows) return Choose<T, kRows + 1>(args);
  }
  Panels<T, kRows>(args);
}

TileKernel F16Tile() {
  return {{WeightOrder::kPanels, kColumns, 1, 1, 0}, kTileRows, Choose<hwy::float16_t, 1>};
}
TileKernel Bf16Tile() {
  return {{WeightOrder::kPanels, kColumns, 2, 1, 0}, kTileRows, Choose<hwy::bfloat16_t, 1>};
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(F16Tile);
HWY_EXPORT(Bf16Tile);
TileKernel ChooseF16Tile() {
  ChooseTargets();
  return HWY_DYNAMIC_DISPATCH(F16Tile)();
}
TileKernel ChooseBf16Tile() {
  ChooseTargets();
  return HWY_DYNAMIC_DISPATCH(Bf16Tile)();
}

}  // namespace arn::cpu
#endif
