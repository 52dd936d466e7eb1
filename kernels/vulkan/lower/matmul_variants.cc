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
    {"gemm-32x32", 64, 32, 32, 8, 32, 1, 0, 0, 0},
    {"gemm-64x64", 256, 64, 64, 16, 16, 2, 0, 0, 0},
    {"gemm-64x32", 128, 64, 32, 8, 32, 2, 0, 0, 0},
    {"gemm-32x64", 64, 32, 64, 16, 32, 1, 0, 0, 0},
    {"gemm-bytes-32x32", 64, 32, 32, 8, 32, 1, 0, 0, kAvoidDot},
    {"gemm-coop-32x32", 0, 32, 32, 0, 0, 1, 2, 2, 0},
    {"gemm-coop-64x64", 0, 64, 64, 0, 0, 1, 4, 2, 0},
    {"gemm-coop-64x128", 0, 64, 128, 0, 0, 2, 8, 4, 0},
    {"gemm-coop-128x128", 0, 128, 128, 0, 0, 2, 8, 4, 0},
    {"gemm-half-32x32", 64, 32, 32, 8, kHalfBlock, 1, 0, 0, 0, true},
    {"gemm-half-64x64", 256, 64, 64, 16, kHalfBlock, 1, 0, 0, 0, true},
};

// The vectors of four outputs of gemm_half.comp.
constexpr bool AllHaveFours() {
  for (const GemmVariant& v : kGemm) {
    if (v.is_half && v.tile_n / v.lanes_n % 4 != 0) return false;
  }
  return true;
}
static_assert(AllHaveFours());

// Shared memory of gemm_half.comp: as words, the tiles, and two peaks of each row.
constexpr uint32_t HalfBytes(const GemmVariant& v) {
  const uint32_t pitch = 2 * (kHalfBlock / 4 + 1);
  return sizeof(uint32_t) * ((v.tile_m + v.tile_n) * (pitch + 2) + v.tile_m);
}

// Bytes of shared memory of the shaders (tile_words.glsl, gemm_*.comp), with the lists of experts'
// rows. coop: of the device, or empty.
constexpr uint32_t SharedBytes(const GemmVariant& v, bool is_integer, const CoopShape& coop) {
  const uint32_t rows = v.tile_m + v.tile_n;
  const uint32_t quads = is_integer ? 2 * v.blocks + 1 : v.depth / 4 + 1;
  uint32_t words = 4 * rows * quads + v.tile_m;
  if (v.subgroups == 0) return sizeof(uint32_t) * (words + v.blocks * v.tile_n);
  words += v.blocks * coop.m * (v.tile_n + 4);
  return sizeof(uint32_t) * words;
}

// Every device has 16 KiB: enough for the variants without cooperative matrices.
constexpr bool AllFit() {
  for (const GemmVariant& v : kGemm) {
    if (v.subgroups != 0) continue;
    const uint32_t most =
        v.is_half ? HalfBytes(v) : Max(SharedBytes(v, true, {}), SharedBytes(v, false, {}));
    if (most > Device::kMinSharedMemory) return false;
  }
  return true;
}
static_assert(AllFit());

// Workgroup size if the variant specifies none and it is not one subgroup (Lowering::Begin).
constexpr uint32_t kUsualLanes = 64;

// The matrices that store the sums reuse the memory of the tiles.
bool StripsFit(const GemmVariant& v, const CoopShape& c) {
  const uint32_t tile_words = 4 * (v.tile_m + v.tile_n) * (2 * v.blocks + 1);
  return v.subgroups * c.m * (c.n + 4) <= tile_words;
}

bool CoopFits(const MatmulTraits& traits, const GemmVariant& v) {
  const CoopShape& c = traits.coop;
  return c.m != 0 && traits.has_full_subgroups &&
         v.subgroups * traits.subgroup_size <= traits.max_lanes &&
         v.tile_m % (v.subgroups / v.subgroups_n * c.m) == 0 &&
         v.tile_n % (v.subgroups_n * c.n) == 0 && StripsFit(v, c) && kInt4BlockSize % c.k == 0 &&
         c.k % 4 == 0 && SharedBytes(v, true, c) <= traits.shared_memory;
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
  if ((avoid & kAvoidDot) != 0 && !(traits.has_dot && IsInteger(dtype))) return false;
  if ((avoid & kAvoidSubgroups) != 0 && traits.subgroup_size == 0) return false;
  const uint32_t usual_lanes = OneSubgroup(traits) != 0 ? OneSubgroup(traits) : kUsualLanes;
  if (!is_tiled && avoid == 0 && lanes == usual_lanes) return false;
  // f32 weights would be rounded too.
  const bool is_half_type = dtype == DType::kF16 || dtype == DType::kBf16;
  if (is_tiled && kGemm[index].is_half && !(traits.has_half && is_half_type)) return false;
  if (is_tiled && kGemm[index].subgroups != 0) {
    return IsInteger(dtype) && CoopFits(traits, kGemm[index]);
  }
  return lanes <= traits.max_lanes;
}

}  // namespace arn::vulkan
