// Products with f16 and bf16 weights in row order. A weight is widened once for the rows of a tile
// and used at once, so one row runs at the speed of memory.
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/half_matmul.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile of kRows x kColumns sums lives in registers: 32 of them, or 16 with SSE and AVX2.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr size_t kTileRows = 4;
#else
constexpr size_t kTileRows = 2;
#endif
constexpr size_t kTileColumns = 4;

// c[r, j] for r < kRows, j < kColumns. kUnroll independent sums per element hide the latency of the
// additions when the tile is small.
template <typename T, size_t kRows, size_t kColumns, size_t kUnroll>
void Tile(const HalfMatmulArgs& args, size_t row, size_t column) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> dh;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d), k = args.k;
  const float* x = args.x + row * k;
  const T* w = reinterpret_cast<const T*>(args.w) + column * k;
  V sums[kUnroll][kRows][kColumns];
  for (auto& a : sums)
    for (auto& b : a)
      for (V& s : b) s = hn::Zero(d);
  size_t i = 0;
  for (; i + kUnroll * lanes <= k; i += kUnroll * lanes) {
    for (size_t u = 0; u < kUnroll; ++u) {
      const size_t at = i + u * lanes;
      V widened[kColumns];
      for (size_t j = 0; j < kColumns; ++j) {
        widened[j] = hn::PromoteTo(d, hn::LoadU(dh, w + j * k + at));
        // Rows are too short for the hardware to see a stream; the next tile's are asked for here.
        if (kRows == 1) hwy::Prefetch(w + (kColumns + j) * k + at);
      }
      for (size_t r = 0; r < kRows; ++r) {
        const V a = hn::LoadU(d, x + r * k + at);
        for (size_t j = 0; j < kColumns; ++j) {
          sums[u][r][j] = hn::MulAdd(a, widened[j], sums[u][r][j]);
        }
      }
    }
  }
  for (; i < k; i += lanes) {
    for (size_t j = 0; j < kColumns; ++j) {
      const V b = hn::PromoteTo(d, hn::LoadN(dh, w + j * k + i, k - i));
      for (size_t r = 0; r < kRows; ++r) {
        sums[0][r][j] = hn::MulAdd(hn::LoadN(d, x + r * k + i, k - i), b, sums[0][r][j]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t j = 0; j < kColumns; ++j) {
      V s = sums[0][r][j];
      for (size_t u = 1; u < kUnroll; ++u) s = hn::Add(s, sums[u][r][j]);
      const float y = hn::ReduceSum(d, s) + args.bias[column + j];
      float* c = args.c + (row + r) * args.c_stride + column + j;
      *c = args.accumulate ? *c + y : y;
    }
  }
}

// How a row is summed must not depend on the columns or rows computed with it, or results would
// change with the number of threads: every tile of more than one row uses one sum per element,
// every tile of one row kSingleUnroll.
constexpr size_t kSingleUnroll = 2;

template <typename T>
void HalfMatmul(const HalfMatmulArgs& args) {
  size_t row = 0;
  for (; row + kTileRows <= args.m; row += kTileRows) {
    size_t j = 0;
    for (; j + kTileColumns <= args.n; j += kTileColumns) {
      Tile<T, kTileRows, kTileColumns, 1>(args, row, j);
    }
    for (; j < args.n; ++j) Tile<T, kTileRows, 1, 1>(args, row, j);
  }
  for (; row < args.m; ++row) {
    size_t j = 0;
    for (; j + kTileColumns <= args.n; j += kTileColumns) {
      Tile<T, 1, kTileColumns, kSingleUnroll>(args, row, j);
    }
    for (; j < args.n; ++j) Tile<T, 1, 1, kSingleUnroll>(args, row, j);
  }
}

void F16Matmul(const HalfMatmulArgs& args) { HalfMatmul<hwy::float16_t>(args); }
void Bf16Matmul(const HalfMatmulArgs& args) { HalfMatmul<hwy::bfloat16_t>(args); }

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(F16Matmul);
HWY_EXPORT(Bf16Matmul);
HalfMatmulFn ChooseF16Matmul() { return HWY_DYNAMIC_POINTER(F16Matmul); }
HalfMatmulFn ChooseBf16Matmul() { return HWY_DYNAMIC_POINTER(Bf16Matmul); }

}  // namespace arn::cpu
#endif
