// Extensions with which a device is created, and their features.
#pragma once

#include "kernels/vulkan/device/device.h"

namespace arn::vulkan {

struct Device::ExtensionList {
  static constexpr uint32_t kMost = 5;
  const char* names[kMost] = {};
  uint32_t n = 0;
  void* features = nullptr;  // chain of the enabled features

  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model = {};
  VkPhysicalDeviceShaderFloat16Int8Features int8 = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups = {};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop = {};
};

}  // namespace arn::vulkan
