// Extensions with which a device is created, and their features.
#pragma once

#include "kernels/vulkan/device/device.h"

namespace arn::vulkan {

inline constexpr const char* kDotExtension = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
inline constexpr const char* kSizesExtension = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
inline constexpr const char* kImportExtension = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
inline constexpr const char* kHalfExtension = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME;
// Required by shaders with cooperative matrices.
inline constexpr const char* kCoopExtensions[] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                                  VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
                                                  kHalfExtension};

// Features of kCoopExtensions.
struct CoopFeatures {
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model = {};
  VkPhysicalDeviceShaderFloat16Int8Features int8 = {};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop = {};

  // Sets the types, and returns the first of them, each before the next.
  void* Chain();
};

struct Device::ExtensionList {
  static constexpr uint32_t kMost = 6;
  const char* names[kMost] = {};
  uint32_t n = 0;
  void* features = nullptr;  // chain of the enabled features

  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups = {};
  VkPhysicalDeviceShaderFloat16Int8Features half = {};  // without cooperative matrices
  CoopFeatures coop;
};

}  // namespace arn::vulkan
