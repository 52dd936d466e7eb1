// Tiles chosen by xnn_init_{f32,qd8_f32_qc8w,qd8_f32_qb4w}_gemm_config() on each CPU type, at the
// pinned XNNPACK commit (src/configs/gemm-config.c). Exception: int4 on x86 is laid out for
// kernels/cpu/simd/int4_tile-inl.h. tests/conformance checks the row of the host CPU. CPUs with
// other tiles (AVX-512 without VNNI, or with it but older than Ice Lake and Zen 4; SSE) repack at
// load.
#include "kernels/pack/code_panel.h"
#include "kernels/pack/pack.h"

namespace arn {
namespace {

constexpr WeightLayout Panels(uint8_t nr, uint8_t kr, uint8_t sr, uint8_t planes = 0) {
  return {WeightOrder::kPanels, nr, kr, sr, planes};
}

// Read by kernels/cpu/simd/half_tile.cc on every CPU.
constexpr WeightLayout kF16 = Panels(32, 1, 1), kBf16 = Panels(32, 2, 1);

constexpr WeightLayout kDevice = {WeightOrder::kDeviceRows};

constexpr PackTarget kTargets[] = {
    {"portable", {}, {}, {}, {}, {}},
    {"x86-avx2", Panels(16, 1, 1), kF16, kBf16, Panels(8, 8, 1), Panels(16, 4, 1, 2)},
    {"x86-avx512vnni", Panels(32, 1, 1), kF16, kBf16, Panels(16, 8, 1), Panels(16, 4, 1, 2)},
    // ARMv7 as well.
    {"arm64-neon", Panels(8, 1, 1), kF16, kBf16, Panels(8, 2, 4), Panels(16, 1, 1, 2)},
    {"arm64-dotprod", Panels(8, 1, 1), kF16, kBf16, Panels(16, 4, 1), Panels(16, 4, 1, 2)},
    {"arm64-i8mm", Panels(8, 1, 1), kF16, kBf16, Panels(16, 8, 1), Panels(16, 8, 1, 2)},
    {"riscv64", Panels(4, 1, 1), kF16, kBf16, Panels(4, 1, 1), Panels(4, 1, 1, 2)},
    {"vulkan", kDevice, kDevice, kDevice, kDevice, kDevice, /*is_device=*/true},
};

bool SameText(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace

Span<const PackTarget> PackTargets() { return kTargets; }

const PackTarget* FindPackTarget(const char* name) {
  for (const PackTarget& target : kTargets) {
    if (SameText(target.name, name)) return &target;
  }
  return nullptr;
}

WeightLayout TargetLayout(const PackTarget& target, DType dtype) {
  if (FindCodeType(dtype) != nullptr) return kCodeLayout;
  // In the order of DType.
  const WeightLayout layouts[] = {target.f32, target.f16, target.bf16, target.int8, target.int4};
  return layouts[static_cast<uint32_t>(dtype)];
}

}  // namespace arn
