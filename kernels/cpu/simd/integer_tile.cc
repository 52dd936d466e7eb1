// Kernels for int4 and int8 weights, based on integer dot products: AVX-512 code plus the VNNI
// instruction, for CPUs that have it.
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/cpu/simd/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/integer_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/simd/int4_tile-inl.h"
#include "kernels/cpu/simd/int8_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// Kernel provides:
//   kLayout                                layout it reads
//   kRows                                  maximum rows per tile
//   PanelBytes(k)
//   Panel<kRows>(args, panel, column, n)   computes n columns, from args.c + column on, of a panel
//                                          for kRows rows, with their change
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
    Kernel::template Panel<kRows>(args, panel, column, n);
  }
}

template <class Kernel>
TileKernel MakeTile() {
  return {Kernel::kLayout, Kernel::kRows, RunTile<Kernel>, kAddsChanges};
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
TileKernel ChooseInt4Tile() { return HasByteDots() ? N_AVX3::Int4Tile() : TileKernel{}; }
TileKernel ChooseInt8Tile() { return HasByteDots() ? N_AVX3::Int8Tile() : TileKernel{}; }
#else
TileKernel ChooseInt4Tile() { return {}; }
TileKernel ChooseInt8Tile() { return {}; }
#endif

}  // namespace arn::cpu
#endif
