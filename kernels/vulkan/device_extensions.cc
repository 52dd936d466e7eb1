#include "kernels/vulkan/device_extensions.h"

#include <cstring>

#include "kernels/vulkan/shaders.h"

namespace arn::vulkan {
namespace {

constexpr const char* kDot = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
// What shaders with cooperative matrices are made for.
constexpr const char* kOfCoop[] = {kCoopExtension, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
                                   VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                                   VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};

}  // namespace

CoopShape ChooseCoopShape(const CoopProperties* properties, uint32_t n) {
  const auto is_int = [](const CoopProperties& p) {
    return p.scope == kCoopSubgroup && p.saturates == VK_FALSE && p.a == kCoopInt8 &&
           p.b == kCoopInt8 && p.c == kCoopInt32 && p.result == kCoopInt32;
  };
  const auto has_floats = [&](const CoopProperties& as) {
    for (uint32_t i = 0; i < n; ++i) {
      const CoopProperties& p = properties[i];
      if (p.scope == kCoopSubgroup && p.result == kCoopF32 && p.m == as.m && p.n == as.n) {
        return true;
      }
    }
    return false;
  };
  CoopShape best;
  for (uint32_t i = 0; i < n; ++i) {
    const CoopProperties& p = properties[i];
    if (!is_int(p) || p.m > kMaxCoop || p.n > kMaxCoop || p.k > 32 || !has_floats(p)) continue;
    if (p.m * p.n * p.k > best.m * best.n * best.k) best = {p.m, p.n, p.k};
  }
  return best;
}

CoopShape Device::FindCoopShape() const {
  const PFN_vkVoidFunction found =
      api_.GetInstanceProcAddr(instance_, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  const auto list = reinterpret_cast<CoopPropertiesFunction>(found);
  if (list == nullptr) return {};
  constexpr uint32_t kMost = 128;
  CoopProperties properties[kMost];
  uint32_t n = kMost;
  const VkResult result = list(physical_, &n, properties);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return {};
  return ChooseCoopShape(properties, n);
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

  if ((avoid & kAvoidCoop) != 0 || !uses_subgroups_ ||
      SpirvOf(Shader::kGemmCoop, {true, false}).empty()) {
    return;
  }
  for (const char* name : kOfCoop) {
    if (!has(name)) return;
  }
  l.memory_model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  l.int8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  l.memory_model.pNext = &l.int8;
  l.int8.pNext = &l.subgroups;
  l.subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  l.subgroups.pNext = &l.coop;
  ask(&l.memory_model);
  // Once the model is enabled, atomics of the other shaders are of its device scope, too.
  if (l.memory_model.vulkanMemoryModel != VK_TRUE ||
      l.memory_model.vulkanMemoryModelDeviceScope != VK_TRUE || l.int8.shaderInt8 != VK_TRUE ||
      l.subgroups.computeFullSubgroups != VK_TRUE || l.coop.has_matrices != VK_TRUE) {
    return;
  }
  coop_ = FindCoopShape();
  if (coop_.m == 0) return;
  // Nothing but what is needed: robustness and the like cost time.
  l.memory_model.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
  l.int8.shaderFloat16 = VK_FALSE;
  l.subgroups.subgroupSizeControl = VK_FALSE;
  l.coop.has_robust_access = VK_FALSE;
  for (const char* name : kOfCoop) l.names[l.n++] = name;
  l.coop.next = l.features;
  l.features = &l.memory_model;
}

}  // namespace arn::vulkan
