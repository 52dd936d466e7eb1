// The ways in which products can be computed: tables, of which a session takes an entry for each
// kind of run and type of weights. All give the same results, but for the order in which f32 is
// summed up.
#pragma once

#include <cstdint>

#include "kernels/vulkan/dispatch.h"
#include "kernels/vulkan/vk_coop.h"
#include "platform/base/dtype.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Of few rows: a workgroup makes a few outputs of a few rows (shaders/gemv_*.comp).
struct GemvVariant {
  const char* name = "";
  uint32_t lanes = 0;  // invocations of a workgroup; 0: those of a subgroup, or 64
  uint32_t outs = 0;
  uint32_t avoid = 0;  // Avoid: what it leaves alone
};

// Of many: a workgroup makes a tile (shaders/gemm_*.comp).
struct GemmVariant {
  const char* name = "";
  uint32_t lanes = 0, tile_m = 0, tile_n = 0;
  uint32_t lanes_n = 0;    // beside each other along the outputs
  uint32_t depth = 0;      // columns at a time, of float weights
  uint32_t subgroups = 0;  // with cooperative matrices, instead of `lanes`; 0: without
  uint32_t avoid = 0;
};

// The first of each is what is taken where nothing was measured.
inline constexpr uint32_t kGemvVariants = 7, kGemmVariants = 7;
const GemvVariant& GemvVariantOf(uint32_t index);
const GemmVariant& GemmVariantOf(uint32_t index);
constexpr uint32_t VariantCount(Mode mode) {
  return mode == Mode::kMany ? kGemmVariants : kGemvVariants;
}
const char* VariantName(Mode mode, uint32_t index);

// What a device has that variants need.
struct ProductTraits {
  uint32_t subgroup_size = 0;  // 0: there are none
  uint32_t max_lanes = 128;
  bool has_dot = false;
  CoopShape coop;
};

// Invocations of a workgroup that is one subgroup; 0: subgroups have no size for it.
uint32_t OneSubgroup(const ProductTraits& traits);

bool IsUsable(const ProductTraits& traits, Mode mode, DType dtype, uint32_t index);

// Which variant each kind of run takes, by type of weights.
struct ProductChoices {
  uint8_t of[kModeCount][kDTypeCount] = {};
};

}  // namespace arn::vulkan
