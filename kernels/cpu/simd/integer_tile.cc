// Kernels for int4 and int8 weights, based on products of bytes: AVX-512 code plus the VNNI
// instruction, for CPUs that have it; for int4 without it, too, with AVX2 or AVX-512.
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

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

// Kernel provides:
//   kLayout                                layout it reads
//   kRows                                  maximum rows per tile
//   PanelBytes(k)
//   Panel<kRows>(args, panel, column, n)   computes n columns, from args.c + column on, of a panel
//                                          for kRows rows, with their change if kAddsChange
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
  return {Kernel::kLayout, Kernel::kRows, RunTile<Kernel>, kAddsChanges && Kernel::kAddsChange};
}
#endif

#if HWY_ARCH_X86
TileKernel Int4Tile(bool has_dot) {
#if HWY_TARGET == HWY_AVX3
  return has_dot ? MakeTile<Int4Kernel>() : MakeTile<Int4PairKernel>();
#elif HWY_TARGET == HWY_AVX2
  (void)has_dot;
  return MakeTile<Int4PairKernel>();
#else
  (void)has_dot;
  return {};
#endif
}
#endif

#if HWY_TARGET == HWY_AVX3
TileKernel Int8Tile() { return MakeTile<Int8Kernel>(); }
#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

#if HWY_ARCH_X86
HWY_EXPORT(Int4Tile);
TileKernel ChooseInt4Tile() {
  ChooseTargets();
  return HWY_DYNAMIC_DISPATCH(Int4Tile)(HasByteDots());
}
#else
TileKernel ChooseInt4Tile() { return {}; }
#endif

#if HWY_TARGETS & HWY_AVX3
// Not dispatched by Highway: AVX-512 with VNNI would be one more target, for which all kernels
// would have to be compiled.
TileKernel ChooseInt8Tile() { return HasByteDots() ? N_AVX3::Int8Tile() : TileKernel{}; }
#else
TileKernel ChooseInt8Tile() { return {}; }
#endif

}  // namespace arn::cpu
#endif
