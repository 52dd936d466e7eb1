// The products of low-rank changes: panels of 16 outputs, times a tile of rows. A lane is an
// output: a weight is widened once for all rows of a tile, and an input is broadcast. Each sum is
// made of the same parts in any tile, so a row gives the same bits whatever is beside it.
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

// A sum is split over even and odd k, which hides the latency of multiply-adds in a lone row.
constexpr uint32_t kSplits = 2;
// Rows of a tile, whose sums fill the registers: 32 of them, or 16 with SSE and AVX2.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 && !defined(ARN_SMALL_CODE)
constexpr uint32_t kManyRows = 12, kFewRows = 4;
#elif HWY_ARCH_ARM_A64 || (HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86)
constexpr uint32_t kManyRows = 3, kFewRows = 3;
#else
constexpr uint32_t kManyRows = 1, kFewRows = 1;
#endif

HWY_INLINE PanelVector LoadLowRank(const float* at) { return hn::Load(PanelTag(), at); }
HWY_INLINE PanelVector LoadLowRank(const hwy::float16_t* at) {
  const hn::Rebind<hwy::float16_t, PanelTag> half;
  return hn::PromoteTo(PanelTag(), hn::Load(half, at));
}

// A panel, of which n outputs are written, times kRows rows.
template <typename T, uint32_t kRows>
HWY_INLINE void PanelTimesRows(const LowRankArgs& args, const T* w, const float* x, size_t n,
                               float* out) {
  const PanelTag d;
  PanelVector sums[kRows][kSplits][kPanelParts];
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t s = 0; s < kSplits; ++s) {
      for (size_t v = 0; v < kPanelParts; ++v) sums[r][s][v] = hn::Zero(d);
    }
  }
  const auto add = [&](uint32_t k, uint32_t s) HWY_ATTR {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kPanelParts; ++v) {
      const PanelVector wide = LoadLowRank(w + size_t{k} * kLowRankColumns + v * kPanelLanes);
      HWY_UNROLL(16)
      for (uint32_t r = 0; r < kRows; ++r) {
        sums[r][s][v] = hn::MulAdd(hn::Set(d, x[r * args.x_stride + k]), wide, sums[r][s][v]);
      }
    }
  };
  uint32_t k = 0;
  for (; k + kSplits <= args.inputs; k += kSplits) {
    add(k, 0);
    add(k + 1, 1);
  }
  if (k < args.inputs) add(k, 0);
  const size_t stride = args.out_stride;
  const bool is_whole = n == kLowRankColumns;
  if (!args.accumulates) {  // all of A's outputs are written
    const PanelVector factor = hn::Set(d, args.factor);
    HWY_UNROLL(16)
    for (uint32_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kPanelParts; ++v) {
        hn::StoreU(hn::Mul(factor, hn::Add(sums[r][0][v], sums[r][1][v])), d,
                   out + r * stride + v * kPanelLanes);
      }
    }
    return;
  }
  HWY_UNROLL(16)
  for (uint32_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kPanelParts; ++v) {
      const PanelVector sum = hn::Add(sums[r][0][v], sums[r][1][v]);
      const size_t at = v * kPanelLanes;
      float* to = out + r * stride + at;
      if (HWY_LIKELY(is_whole)) {
        hn::StoreU(hn::Add(hn::LoadU(d, to), sum), d, to);
      } else if (at < n) {
        const size_t left = HWY_MIN(kPanelLanes, n - at);
        hn::StoreN(hn::Add(hn::LoadN(d, to, left), sum), d, to, left);
      }
    }
  }
}

// All outputs of kRows rows from *row on, as long as there are so many: rows stay in L1.
template <typename T, uint32_t kRows>
void LowRankTiles(const LowRankArgs& args, uint32_t* row) {
  for (; *row + kRows <= args.n_rows; *row += kRows) {
    const float* x = args.x + *row * args.x_stride;
    float* out = args.out + *row * args.out_stride;
    for (uint32_t column = 0; column < args.n; column += kLowRankColumns) {
      const T* w = reinterpret_cast<const T*>(args.panels) + size_t{column} * args.inputs;
      const size_t n = HWY_MIN(kLowRankColumns, args.n - column);
      PanelTimesRows<T, kRows>(args, w, x, n, out + column);
    }
  }
}

void MultiplyLowRank(const LowRankArgs& args) {
  uint32_t row = 0;
  if (args.dtype == DType::kF32) return LowRankTiles<float, 1>(args, &row);
  if (kManyRows > kFewRows) LowRankTiles<hwy::float16_t, kManyRows>(args, &row);
  if (kFewRows > 1) LowRankTiles<hwy::float16_t, kFewRows>(args, &row);
  LowRankTiles<hwy::float16_t, 1>(args, &row);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(MultiplyLowRank);
LowRankFn ChooseLowRank() { return HWY_DYNAMIC_POINTER(MultiplyLowRank); }

}  // namespace arn::cpu
#endif
