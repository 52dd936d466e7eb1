// Kernels for int4 and int8 weights: AVX-512 code plus the VNNI instruction, for CPUs that have it,
// and for int4 AVX2 code.
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
// DType::kInt4 or kInt8.
TileKernel IntegerTile(DType dtype, bool has_dot) {
  const bool is_int4 = dtype == DType::kInt4;
#if HWY_TARGET == HWY_AVX3
  // Some CPUs without has_dot have VNNI, which XNNPACK uses.
  if (!has_dot) return {};
  return is_int4 ? MakeTile<Int4Kernel>() : MakeTile<Int8Kernel>();
#elif HWY_TARGET == HWY_AVX2
  (void)has_dot;
  return is_int4 ? MakeTile<Int4PairKernel>() : TileKernel{};
#else
  (void)is_int4, (void)has_dot;
  return {};
#endif
}
#endif

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

#if HWY_ARCH_X86
// VNNI is not a target of Highway's dispatch: it would be one more, for which all kernels would
// have to be compiled.
HWY_EXPORT(IntegerTile);
TileKernel ChooseIntegerTile(DType dtype) {
  ChooseTargets();
  return HWY_DYNAMIC_DISPATCH(IntegerTile)(dtype, HasByteDots());
}
#else
TileKernel ChooseIntegerTile(DType) { return {}; }
#endif

}  // namespace arn::cpu
#endif
