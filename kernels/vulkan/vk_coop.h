// VK_KHR_cooperative_matrix, for headers that are older than it: names of our own for the numbers
// and structures that its specification fixes.
#pragma once

#include <cstdint>

#include "kernels/vulkan/vk_api.h"

namespace arn::vulkan {

inline constexpr char kCoopExtension[] = "VK_KHR_cooperative_matrix";
inline constexpr auto kCoopFeaturesType = static_cast<VkStructureType>(1000506000);
inline constexpr auto kCoopPropertiesType = static_cast<VkStructureType>(1000506001);

// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct CoopFeatures {
  VkStructureType type = kCoopFeaturesType;
  void* next = nullptr;
  VkBool32 has_matrices = VK_FALSE, has_robust_access = VK_FALSE;
};

// VkComponentTypeKHR and VkScopeKHR: those that are used.
inline constexpr uint32_t kCoopF32 = 1, kCoopInt8 = 3, kCoopInt32 = 5, kCoopSubgroup = 3;

// VkCooperativeMatrixPropertiesKHR.
struct CoopProperties {
  VkStructureType type = kCoopPropertiesType;
  void* next = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a = 0, b = 0, c = 0, result = 0;
  VkBool32 saturates = VK_FALSE;
  uint32_t scope = 0;
};
static_assert(sizeof(CoopProperties) == 56);

// vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR.
using CoopPropertiesFunction = VkResult(VKAPI_PTR*)(VkPhysicalDevice device, uint32_t* n,
                                                    CoopProperties* properties);

// A product of matrices that a subgroup makes: [m, k] of int8 times [k, n] of int8, added to int32.
struct CoopShape {
  uint32_t m = 0, n = 0, k = 0;  // m = 0: there is none
};
inline constexpr uint32_t kMaxCoop = 16;  // of m

// The best of what a device lists for gemm_coop.comp; sums of f32 have to come in its size, too.
CoopShape ChooseCoopShape(const CoopProperties* properties, uint32_t n);

}  // namespace arn::vulkan
