// Cooperative matrices (VK_KHR_cooperative_matrix): the shapes the shaders use.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/coop_shape.h"
#include "kernels/vulkan/device/vk_api.h"

namespace arn::vulkan {

// Returns the best shape a device lists for gemm_coop.comp. f32 accumulators of the same size are
// also required.
CoopShape ChooseCoopShape(const VkCooperativeMatrixPropertiesKHR* properties, uint32_t n);

// Returns the best shape for attention_coop.comp: f16 x f16 -> f32, each size 8 or 16.
CoopShape ChooseHalfCoopShape(const VkCooperativeMatrixPropertiesKHR* properties, uint32_t n);

}  // namespace arn::vulkan
