// Kernels for int4 and int8 weights, based on integer dot products: AVX-512 code plus the VNNI
// instruction, for CPUs that have it.
#include "kernels/cpu/simd/tile.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/integer_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/simd/int4_tile-inl.h"
#include "kernels/cpu/simd/int8_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// A change is prefetched so many of its panels ahead, into L2.
constexpr size_t kChangePanelsAhead = 2;

// c[n] += the change of panel `i`.
HWY_INLINE void AddChange(const TileChange& change, size_t i, size_t n, float* c) {
  const hn::FixedTag<int32_t, kLowRankColumns> di32;
  const hn::Rebind<float, decltype(di32)> df;
  const hn::Repartition<int8_t, decltype(di32)> di8;
  const RoundedRanks& ranks = *change.ranks;
  const std::byte* w = change.panels + i * change.panel_bytes;
  const std::byte* next = change.next + i * change.next_bytes;
  for (uint32_t at = 0; at < change.next_bytes; at += 64) __builtin_prefetch(next + at, 0, 2);
  // The weights are offset by 128, to be unsigned.
  auto sum = hn::Set(di32, -128 * ranks.sum);
  for (uint32_t k = 0; k < change.n_ranks; k += 4, w += 4 * kLowRankColumns) {
    __builtin_prefetch(w + kChangePanelsAhead * change.panel_bytes, 0, 2);
    int32_t four;
    std::memcpy(&four, ranks.values + k, sizeof four);
    const auto weights = hn::Xor(hn::LoadU(di8, reinterpret_cast<const int8_t*>(w)),
                                 hn::Set(di8, static_cast<int8_t>(-128)));
    vnni::AddProducts(weights.raw, hn::BitCast(di8, hn::Set(di32, four)).raw, &sum.raw);
  }
  const auto factor = hn::Set(df, change.scales[i] * ranks.scale);
  hn::StoreN(hn::MulAdd(hn::ConvertTo(df, sum), factor, hn::LoadN(df, c, n)), df, c, n);
}

// Kernel provides:
//   kLayout              layout it reads
//   kRows                maximum rows per tile
//   PanelBytes(k)
//   Panel<kRows>(args, panel, n, c)    computes n columns of one panel for kRows rows, to c
template <class Kernel, uint32_t kRows = 1>
void RunTile(const TileArgs& args) {
  if constexpr (kRows < Kernel::kRows) {
    if (args.rows > kRows) return RunTile<Kernel, kRows + 1>(args);
  }
  constexpr uint32_t kColumns = Kernel::kColumns;
  const uint64_t panel_bytes = Kernel::PanelBytes(args.k);
  const std::byte* panel = args.panels;
  for (uint32_t column = 0; column < args.n; column += kColumns, panel += panel_bytes) {
    const size_t n = HWY_MIN(kColumns, args.n - column);
    Kernel::template Panel<kRows>(args, panel, n, args.c + column);
    if constexpr (kHasAdapters && kRows == 1) {
      static_assert(kColumns == kLowRankColumns);
      if (args.change != nullptr) {
        AddChange(*args.change, column / kColumns, n, args.c + column);
      }
    }
  }
}

template <class Kernel>
TileKernel MakeTile() {
  return {Kernel::kLayout, Kernel::kRows, RunTile<Kernel>, kHasAdapters};
}
TileKernel Int4Tile() { return MakeTile<Int4Kernel>(); }
TileKernel Int8Tile() { return MakeTile<Int8Kernel>(); }

#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

#if HWY_TARGETS & HWY_AVX3
// Not dispatched by Highway: AVX-512 with VNNI would be one more target, for which all kernels
// would have to be compiled.
static bool HasVnni() { return (hwy::SupportedTargets() & HWY_AVX3_DL) != 0; }

TileKernel ChooseInt4Tile() { return HasVnni() ? N_AVX3::Int4Tile() : TileKernel{}; }
TileKernel ChooseInt8Tile() { return HasVnni() ? N_AVX3::Int8Tile() : TileKernel{}; }
#else
TileKernel ChooseInt4Tile() { return {}; }
TileKernel ChooseInt8Tile() { return {}; }
#endif

}  // namespace arn::cpu
#endif
