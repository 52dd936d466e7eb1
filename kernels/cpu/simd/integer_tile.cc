// The kernels of int4 and int8 weights, which live off integer dot products.
#include "kernels/cpu/simd/targets_dot.h"
#include "kernels/cpu/simd/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/integer_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/simd/int4_tile-inl.h"
#include "kernels/cpu/simd/int8_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86

// Of Kernel:
//   kLayout              that it reads
//   kRows                the most rows of a tile
//   PanelBytes(k)
//   Panel<kRows>(args, panel, n, c)    n columns of one panel for so many rows, to c
template <class Kernel, uint32_t kRows = 1>
void RunTile(const TileArgs& args) {
  if constexpr (kRows < Kernel::kRows) {
    if (args.rows > kRows) return RunTile<Kernel, kRows + 1>(args);
  }
  constexpr uint32_t kColumns = Kernel::kColumns;
  const uint64_t panel_bytes = Kernel::PanelBytes(args.k);
  const std::byte* panel = args.panels;
  for (uint32_t column = 0; column < args.n; column += kColumns, panel += panel_bytes) {
    Kernel::template Panel<kRows>(args, panel, HWY_MIN(kColumns, args.n - column), args.c + column);
  }
}

TileKernel Int4Tile() { return {Int4Kernel::kLayout, Int4Kernel::kRows, RunTile<Int4Kernel>}; }
TileKernel Int8Tile() { return {Int8Kernel::kLayout, Int8Kernel::kRows, RunTile<Int8Kernel>}; }

#else

TileKernel Int4Tile() { return {}; }
TileKernel Int8Tile() { return {}; }

#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Int4Tile);
HWY_EXPORT(Int8Tile);
TileKernel ChooseInt4Tile() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return HWY_DYNAMIC_DISPATCH(Int4Tile)();
}
TileKernel ChooseInt8Tile() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return HWY_DYNAMIC_DISPATCH(Int8Tile)();
}

}  // namespace arn::cpu
#endif
