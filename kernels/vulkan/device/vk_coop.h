// Cooperative matrices (VK_KHR_cooperative_matrix): the shape the shader uses.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/vk_api.h"

namespace arn::vulkan {

// A matmul by one subgroup: [m, k] int8 times [k, n] int8, accumulated in int32.
struct CoopShape {
  uint32_t m = 0, n = 0, k = 0;  // m = 0: not supported
};
inline constexpr uint32_t kMaxCoop = 16;  // maximum m

// Returns the best shape a device lists for gemm_coop.comp. f32 accumulators of the same size are
// also required.
CoopShape ChooseCoopShape(const VkCooperativeMatrixPropertiesKHR* properties, uint32_t n);

}  // namespace arn::vulkan
