// From TileArgs to a kernel's panels. Included once per target by files that have included
// hwy/highway.h.
#if defined(ARN_KERNELS_CPU_SIMD_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_PANELS_INL_H_
#undef ARN_KERNELS_CPU_SIMD_PANELS_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_PANELS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/tile.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
// sum += the products of a's unsigned and b's signed bytes, four to a lane. Around its own
// intrinsic of this instruction GCC 12 copies the sum, and has no registers left for a tile of
// sums.
template <class VU8, class VI8, class VI32>
HWY_INLINE void AddProducts(VU8 a, VI8 b, VI32& sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
}
#endif

// A TileFn. Of Kernel:
//   kRows, kColumns      the most rows of a tile, and the columns of a panel
//   PanelBytes(k)
//   Panel<kRows>(args, panel, n, c)    n <= kColumns columns of so many rows, to c
template <class Kernel, uint32_t kRows = 1>
void RunTile(const TileArgs& args) {
  if constexpr (kRows < Kernel::kRows) {
    if (args.rows > kRows) return RunTile<Kernel, kRows + 1>(args);
  }
  const uint64_t panel_bytes = Kernel::PanelBytes(args.k);
  const std::byte* panel = args.panels;
  for (uint32_t column = 0; column < args.n; column += Kernel::kColumns, panel += panel_bytes) {
    const size_t n = HWY_MIN(Kernel::kColumns, args.n - column);
    Kernel::template Panel<kRows>(args, panel, n, args.c + column);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
