#include "kernels/vulkan/device/device_extensions.h"

#include "kernels/vulkan/shaders/shaders.h"

namespace arn::vulkan {

void* CoopFeatures::Chain() {
  memory_model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  int8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  coop.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  memory_model.pNext = &int8;
  int8.pNext = &coop;
  return &memory_model;
}

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

CoopShape ChooseHalfCoopShape(const VkCooperativeMatrixPropertiesKHR* properties, uint32_t n) {
  const auto fits = [](uint32_t size) { return size == 8 || size == 16; };
  CoopShape best;
  for (uint32_t i = 0; i < n; ++i) {
    const VkCooperativeMatrixPropertiesKHR& p = properties[i];
    const bool is_half =
        p.scope == VK_SCOPE_SUBGROUP_KHR && p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
        p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
        p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    if (!is_half || !fits(p.MSize) || !fits(p.NSize) || !fits(p.KSize)) continue;
    if (p.MSize * p.NSize * p.KSize > best.m * best.n * best.k) {
      best = {p.MSize, p.NSize, p.KSize};
    }
  }
  return best;
}

void Device::FindCoopShapes() {
  const PFN_vkVoidFunction found =
      api_.GetInstanceProcAddr(instance_, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(found);
  if (list == nullptr) return;
  constexpr uint32_t kMost = 128;
  VkCooperativeMatrixPropertiesKHR properties[kMost] = {};
  for (auto& p : properties) p.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  uint32_t n = kMost;
  const VkResult result = list(physical_, &n, properties);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return;
  coop_ = ChooseCoopShape(properties, n);
  if (coop_.m != 0 && report_.has_half) half_coop_ = ChooseHalfCoopShape(properties, n);
}

// Enables what is used, and nothing else: robustness and the like cost time.
void Device::ChooseExtensions(ExtensionList* list) {
  ExtensionList& l = *list;
  if (use_.dot) {
    l.dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    l.dot.shaderIntegerDotProduct = VK_TRUE;
    l.names[l.n++] = kDotExtension;
    l.features = &l.dot;
  }
  if (use_.full_subgroups) {
    l.subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    l.subgroups.computeFullSubgroups = VK_TRUE;
    l.subgroups.subgroupSizeControl = use_.sized_subgroups ? VK_TRUE : VK_FALSE;
    l.subgroups.pNext = l.features;
    l.names[l.n++] = kSizesExtension;
    l.features = &l.subgroups;
  }
  if (use_.import_align != 0) l.names[l.n++] = kImportExtension;
  if (use_.coop && !SpirvOf(Shader::kGemmCoop, {true, false}).empty()) FindCoopShapes();
  if (coop_.m == 0) {
    if (!use_.half) return;
    l.half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    l.half.shaderFloat16 = VK_TRUE;
    l.half.pNext = l.features;
    l.names[l.n++] = kHalfExtension;
    l.features = &l.half;
    return;
  }
  // With the Vulkan memory model enabled, atomics in the other shaders have device scope too.
  void* const first = l.coop.Chain();
  l.coop.memory_model.vulkanMemoryModel = VK_TRUE;
  l.coop.memory_model.vulkanMemoryModelDeviceScope = VK_TRUE;
  l.coop.int8.shaderInt8 = VK_TRUE;
  l.coop.int8.shaderFloat16 = use_.half || half_coop_.m != 0 ? VK_TRUE : VK_FALSE;
  l.coop.coop.cooperativeMatrix = VK_TRUE;
  l.coop.coop.pNext = l.features;
  for (const char* name : kCoopExtensions) l.names[l.n++] = name;
  l.features = first;
}

}  // namespace arn::vulkan
