#include "kernels/vulkan/device/device_extensions.h"

#include <cstring>

#include "kernels/vulkan/shaders/shaders.h"

namespace arn::vulkan {
namespace {

constexpr const char* kDot = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
// Required by shaders with cooperative matrices.
constexpr const char* kOfCoop[] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                   VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
                                   VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME};
constexpr const char* kSizes = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;

}  // namespace

CoopShape ChooseCoopShape(const VkCooperativeMatrixPropertiesKHR* properties, uint32_t n) {
  using Properties = VkCooperativeMatrixPropertiesKHR;
  const auto is_int = [](const Properties& p) {
    return p.scope == VK_SCOPE_SUBGROUP_KHR && p.saturatingAccumulation == VK_FALSE &&
           p.AType == VK_COMPONENT_TYPE_SINT8_KHR && p.BType == VK_COMPONENT_TYPE_SINT8_KHR &&
           p.CType == VK_COMPONENT_TYPE_SINT32_KHR && p.ResultType == VK_COMPONENT_TYPE_SINT32_KHR;
  };
  const auto has_floats = [&](const Properties& as) {
    for (uint32_t i = 0; i < n; ++i) {
      const Properties& p = properties[i];
      if (p.scope == VK_SCOPE_SUBGROUP_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
          p.MSize == as.MSize && p.NSize == as.NSize) {
        return true;
      }
    }
    return false;
  };
  CoopShape best;
  for (uint32_t i = 0; i < n; ++i) {
    const Properties& p = properties[i];
    if (!is_int(p) || p.MSize > kMaxCoop || p.NSize > kMaxCoop || p.KSize > 32 || !has_floats(p)) {
      continue;
    }
    if (p.MSize * p.NSize * p.KSize > best.m * best.n * best.k) {
      best = {p.MSize, p.NSize, p.KSize};
    }
  }
  return best;
}

CoopShape Device::FindCoopShape() const {
  const PFN_vkVoidFunction found =
      api_.GetInstanceProcAddr(instance_, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(found);
  if (list == nullptr) return {};
  constexpr uint32_t kMost = 128;
  VkCooperativeMatrixPropertiesKHR properties[kMost] = {};
  for (auto& p : properties) p.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  uint32_t n = kMost;
  const VkResult result = list(physical_, &n, properties);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return {};
  return ChooseCoopShape(properties, n);
}

// Call after the features were queried.
void Device::ChooseSubgroups(ExtensionList* list) {
  VkPhysicalDeviceSubgroupSizeControlFeatures& features = list->subgroups;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &sizes;
  api_.GetPhysicalDeviceProperties2(physical_, &properties);
  has_full_subgroups_ = features.computeFullSubgroups == VK_TRUE;
  has_sized_subgroups_ = has_full_subgroups_ && features.subgroupSizeControl == VK_TRUE &&
                         (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                         sizes.minSubgroupSize <= subgroup_size_ &&
                         subgroup_size_ <= sizes.maxSubgroupSize;
  if (!has_full_subgroups_) return;
  features.subgroupSizeControl = has_sized_subgroups_ ? VK_TRUE : VK_FALSE;
  list->names[list->n++] = kSizes;
  features.pNext = list->features;
  list->features = &features;
}

void Device::ChooseExtensions(uint32_t avoid, ExtensionList* list) {
  ExtensionList& l = *list;
  VkExtensionProperties extensions[512];
  uint32_t n = 512;
  const VkResult listed =
      api_.EnumerateDeviceExtensionProperties(physical_, nullptr, &n, extensions);
  if (listed != VK_SUCCESS && listed != VK_INCOMPLETE) n = 0;
  const auto has = [&](const char* name) {
    for (uint32_t i = 0; i < n; ++i) {
      if (std::strcmp(extensions[i].extensionName, name) == 0) return true;
    }
    return false;
  };
  const auto ask = [&](void* features) {
    VkPhysicalDeviceFeatures2 all = {};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    all.pNext = features;
    api_.GetPhysicalDeviceFeatures2(physical_, &all);
  };
  l.dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  if (has(kDot) && (avoid & kAvoidDot) == 0) {
    ask(&l.dot);
    uses_dot_ = l.dot.shaderIntegerDotProduct == VK_TRUE;
  }
  if (uses_dot_) {
    l.names[l.n++] = kDot;
    l.features = &l.dot;
  }

  l.subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  if (uses_subgroups_ && (avoid & kAvoidFullSubgroups) == 0 && has(kSizes)) {
    ask(&l.subgroups);
    ChooseSubgroups(&l);
  }

  if ((avoid & kAvoidCoop) != 0 || !has_full_subgroups_ ||
      SpirvOf(Shader::kGemmCoop, {true, false}).empty()) {
    return;
  }
  for (const char* name : kOfCoop) {
    if (!has(name)) return;
  }
  l.memory_model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  l.int8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  l.memory_model.pNext = &l.int8;
  l.int8.pNext = &l.coop;
  l.coop.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  ask(&l.memory_model);
  // With the Vulkan memory model enabled, atomics in the other shaders have device scope too.
  if (l.memory_model.vulkanMemoryModel != VK_TRUE ||
      l.memory_model.vulkanMemoryModelDeviceScope != VK_TRUE || l.int8.shaderInt8 != VK_TRUE ||
      l.coop.cooperativeMatrix != VK_TRUE) {
    return;
  }
  coop_ = FindCoopShape();
  if (coop_.m == 0) return;
  // Disables unneeded features: robustness and the like cost time.
  l.memory_model.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
  l.int8.shaderFloat16 = VK_FALSE;
  l.coop.cooperativeMatrixRobustBufferAccess = VK_FALSE;
  for (const char* name : kOfCoop) l.names[l.n++] = name;
  l.coop.pNext = l.features;
  l.features = &l.memory_model;
}

}  // namespace arn::vulkan
