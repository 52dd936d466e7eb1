#include "kernels/vulkan/lower/matmul_variants.h"

#include "kernels/vulkan/device/quirks.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr GemvVariant kGemv[kGemvVariants] = {
    {"gemv-4", 0, 4, 0},
    {"gemv-2", 0, 2, 0},
    {"gemv-8", 0, 8, 0},
    {"gemv-64x4", 64, 4, 0},
    {"gemv-128x2", 128, 2, 0},
    {"gemv-shared-64x4", 64, 4, kAvoidSubgroups},
    {"gemv-bytes-4", 0, 4, kAvoidDot},
};

constexpr GemmVariant kGemm[kGemmVariants] = {
    {"gemm-32x32", 64, 32, 32, 8, 32, 0, 0},
    {"gemm-64x64", 256, 64, 64, 16, 16, 0, 0},
    {"gemm-64x32", 128, 64, 32, 8, 32, 0, 0},
    {"gemm-32x64", 64, 32, 64, 16, 32, 0, 0},
    {"gemm-bytes-32x32", 64, 32, 32, 8, 32, 0, kAvoidDot},
    {"gemm-coop-32x32", 0, 32, 32, 0, 0, 2, 0},
    {"gemm-coop-64x64", 0, 64, 64, 0, 0, 4, 0},
};

// True if the tiles of floats and of words fit in the 16 KiB of shared memory that every device
// has.
constexpr bool FitsSharedMemory(const GemmVariant& v) {
  constexpr uint32_t kWords = 16384 / 4, kDepth = 8;
  const uint32_t both = v.tile_m + v.tile_n;
  if (v.subgroups != 0) {
    return both * (kDepth + 4) + 2 * kMaxCoop * (v.tile_n + 4) + v.tile_m <= kWords;
  }
  return v.depth * (both + 2) + v.tile_m <= kWords &&
         kDepth * (both + 2) + v.tile_m + v.tile_n <= kWords;
}
constexpr bool AllFit() {
  for (const GemmVariant& v : kGemm) {
    if (!FitsSharedMemory(v)) return false;
  }
  return true;
}
static_assert(AllFit());

// Workgroup size if the variant specifies none and it is not one subgroup (Lowering::Begin).
constexpr uint32_t kUsualLanes = 64;

bool IsIntegerType(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kInt4; }

bool CoopFits(const MatmulTraits& traits, const GemmVariant& v) {
  constexpr uint32_t kBlock = 32;  // columns per iteration
  const CoopShape& c = traits.coop;
  return c.m != 0 && traits.has_full_subgroups &&
         v.subgroups * traits.subgroup_size <= traits.max_lanes && v.tile_m % c.m == 0 &&
         v.tile_n % (v.subgroups * c.n) == 0 && kBlock % c.k == 0 && c.k % 4 == 0;
}

}  // namespace

uint32_t OneSubgroup(const MatmulTraits& traits) {
  const uint32_t size = traits.subgroup_size;
  return traits.has_full_subgroups && size >= 8 && size <= 128 ? size : 0;
}

const GemvVariant& GemvVariantOf(uint32_t index) { return kGemv[index]; }
const GemmVariant& GemmVariantOf(uint32_t index) { return kGemm[index]; }

const char* VariantName(Mode mode, uint32_t index) {
  return mode == Mode::kMany ? kGemm[index].name : kGemv[index].name;
}

bool IsUsable(const MatmulTraits& traits, Mode mode, DType dtype, uint32_t index) {
  if (index == 0) return true;
  if (index >= VariantCount(mode)) return false;
  const bool is_tiled = mode == Mode::kMany;
  const uint32_t avoid = is_tiled ? kGemm[index].avoid : kGemv[index].avoid;
  const uint32_t lanes = is_tiled ? kGemm[index].lanes : kGemv[index].lanes;
  // Skips variants that would be identical to another one on this device.
  if ((avoid & kAvoidDot) != 0 && !(traits.has_dot && IsIntegerType(dtype))) return false;
  if ((avoid & kAvoidSubgroups) != 0 && traits.subgroup_size == 0) return false;
  const uint32_t usual_lanes = OneSubgroup(traits) != 0 ? OneSubgroup(traits) : kUsualLanes;
  if (!is_tiled && avoid == 0 && lanes == usual_lanes) return false;
  if (is_tiled && kGemm[index].subgroups != 0) {
    return IsIntegerType(dtype) && CoopFits(traits, kGemm[index]);
  }
  return lanes <= traits.max_lanes;
}

}  // namespace arn::vulkan
