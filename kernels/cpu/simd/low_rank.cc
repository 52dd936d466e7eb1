// The products of low-rank changes: panels of 16 outputs, times a tile of rows. A lane is an
// output: a weight is widened once for all rows of a tile, and an input is broadcast. Each sum is
// split over k modulo kSplits in any tile, so a row gives the same bits whatever is beside it.
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/low_rank.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PanelTag = hn::CappedTag<float, kLowRankColumns>;
using PanelVector = hn::Vec<PanelTag>;
constexpr size_t kPanelLanes = HWY_MAX_LANES_D(PanelTag);
constexpr size_t kPanelParts = kLowRankColumns / kPanelLanes;

// Sums that a tile keeps in registers: as many as hide the latency of a multiply-add.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr uint32_t kSplits = 4, kLongRows = 4, kShortRows = 8;
#elif HWY_ARCH_ARM_A64
constexpr uint32_t kSplits = 2, kLongRows = 2, kShortRows = 4;
#else
constexpr uint32_t kSplits = 2, kLongRows = kPanelParts == 2 ? 2 : 1, kShortRows = 2 * kLongRows;
#endif
// Sums of at most this many terms are not split: a tile then has more rows.
constexpr uint32_t kShortInputs = 64;

HWY_INLINE PanelVector LoadLowRank(const float* at) { return hn::Load(PanelTag(), at); }
HWY_INLINE PanelVector LoadLowRank(const hwy::float16_t* at) {
  const hn::Rebind<hwy::float16_t, PanelTag> half;
  return hn::PromoteTo(PanelTag(), hn::Load(half, at));
}

// A panel, of which n outputs are written, times kRows rows.
template <typename T, uint32_t kRows, uint32_t kParts>
HWY_INLINE void PanelTimesRows(const LowRankArgs& args, const T* w, const float* x, size_t n,
                               float* out) {
  const PanelTag d;
  PanelVector sums[kRows][kParts][kPanelParts];
  HWY_UNROLL(8)
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t s = 0; s < kParts; ++s) {
      for (size_t v = 0; v < kPanelParts; ++v) sums[r][s][v] = hn::Zero(d);
    }
  }
  const auto add = [&](uint32_t k, uint32_t s) HWY_ATTR {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kPanelParts; ++v) {
      const PanelVector wide = LoadLowRank(w + size_t{k} * kLowRankColumns + v * kPanelLanes);
      HWY_UNROLL(8)
      for (uint32_t r = 0; r < kRows; ++r) {
        sums[r][s][v] = hn::MulAdd(hn::Set(d, x[r * args.x_stride + k]), wide, sums[r][s][v]);
      }
    }
  };
  uint32_t k = 0;
  for (; k + kParts <= args.inputs; k += kParts) {
    HWY_UNROLL(4)
    for (uint32_t s = 0; s < kParts; ++s) add(k + s, s);
  }
  HWY_UNROLL(4)
  for (uint32_t s = 0; s + 1 < kParts; ++s) {
    if (k + s < args.inputs) add(k + s, s);
  }
  HWY_UNROLL(8)
  for (uint32_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kPanelParts; ++v) {
      PanelVector sum = sums[r][0][v];
      HWY_UNROLL(4)
      for (uint32_t s = 1; s < kParts; ++s) sum = hn::Add(sum, sums[r][s][v]);
      const size_t at = v * kPanelLanes;
      if (at >= n) break;
      float* to = out + r * args.out_stride + at;
      if (at + kPanelLanes <= n) {
        sum = args.accumulates ? hn::Add(hn::LoadU(d, to), sum)
                               : hn::Mul(hn::Set(d, args.factor), sum);
        hn::StoreU(sum, d, to);
      } else {
        sum = args.accumulates ? hn::Add(hn::LoadN(d, to, n - at), sum)
                               : hn::Mul(hn::Set(d, args.factor), sum);
        hn::StoreN(sum, d, to, n - at);
      }
    }
  }
}

template <typename T, uint32_t kRows, uint32_t kParts>
void LowRankTiles(const LowRankArgs& args) {
  for (uint32_t column = 0; column < args.n; column += kLowRankColumns) {
    const T* w = reinterpret_cast<const T*>(args.panels) + size_t{column} * args.inputs;
    const size_t n = HWY_MIN(kLowRankColumns, args.n - column);
    uint32_t row = 0;
    for (; row + kRows <= args.n_rows; row += kRows) {
      PanelTimesRows<T, kRows, kParts>(args, w, args.x + row * args.x_stride, n,
                                       args.out + row * args.out_stride + column);
    }
    for (; row < args.n_rows; ++row) {
      PanelTimesRows<T, 1, kParts>(args, w, args.x + row * args.x_stride, n,
                                   args.out + row * args.out_stride + column);
    }
  }
}

template <typename T>
void LowRankOf(const LowRankArgs& args) {
  if (args.inputs <= kShortInputs) {
    LowRankTiles<T, kShortRows, 1>(args);
  } else {
    LowRankTiles<T, kLongRows, kSplits>(args);
  }
}

void MultiplyLowRank(const LowRankArgs& args) {
  if (args.dtype == DType::kF16) {
    LowRankOf<hwy::float16_t>(args);
  } else {
    LowRankOf<float>(args);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(MultiplyLowRank);
LowRankFn ChooseLowRank() { return HWY_DYNAMIC_POINTER(MultiplyLowRank); }

}  // namespace arn::cpu
#endif
