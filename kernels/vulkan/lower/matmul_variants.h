// Kernel variants of matmuls, as tables. A session picks one entry per mode (one row, few, many)
// and weight type. Results are the same, except for the order of f32 sums, and for products in f16.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/device/vk_coop.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "platform/base/dtype.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Few rows: a workgroup computes a few outputs of a few rows (shaders/gemv_*.comp).
struct GemvVariant {
  const char* name = "";
  uint32_t lanes = 0;  // invocations per workgroup; 0: subgroup size, or 64
  uint32_t outs = 0;
  uint32_t avoid = 0;  // Avoid flags: features not used
};

// Many rows: a workgroup computes a tile (shaders/gemm_*.comp).
struct GemmVariant {
  const char* name = "";
  uint32_t lanes = 0, tile_m = 0, tile_n = 0;
  uint32_t lanes_n = 0;  // invocations along the outputs
  uint32_t depth = 0;    // columns per iteration, for float weights
  uint32_t blocks = 1;   // of 32 columns per iteration, for integer weights
  // Instead of `lanes`, for cooperative matrices: number of subgroups, and of those along the
  // outputs; 0: not used.
  uint32_t subgroups = 0, subgroups_n = 0;
  uint32_t avoid = 0;
  bool is_half = false;  // products in f16: gemm_half.comp
};

// The first variant of each table is the default if nothing was measured.
inline constexpr uint32_t kGemvVariants = 7, kGemmVariants = 11;
const GemvVariant& GemvVariantOf(uint32_t index);
const GemmVariant& GemmVariantOf(uint32_t index);
constexpr uint32_t VariantCount(Mode mode) {
  return mode == Mode::kMany ? kGemmVariants : kGemvVariants;
}
const char* VariantName(Mode mode, uint32_t index);

// Device features required by variants.
struct MatmulTraits {
  uint32_t subgroup_size = 0;       // 0: no subgroups
  bool has_full_subgroups = false;  // a workgroup of subgroup_size can be forced into one subgroup
  uint32_t max_lanes = 128;
  uint32_t shared_memory = Device::kMinSharedMemory;  // of a workgroup, in bytes
  // Steps of an int8 matmul of one row whose loads are in flight together. More hide the latency of
  // a memory that subgroups wait for. A step of int4 has twice the loads.
  uint32_t int8_gemv_steps = 1;
  bool has_dot = false;
  bool has_half = false;
  CoopShape coop;
};

// Returns the size of a workgroup that is guaranteed to be one subgroup; 0: there is no guarantee.
uint32_t OneSubgroup(const MatmulTraits& traits);

bool IsUsable(const MatmulTraits& traits, Mode mode, DType dtype, uint32_t index);

// The variant used per mode and weight type.
struct MatmulChoices {
  uint8_t of[kModeCount][kDTypeCount] = {};
};

}  // namespace arn::vulkan
