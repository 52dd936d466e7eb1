#include "kernels/vulkan/device/device_report.h"

#include <cstring>

#include "kernels/contract/backend.h"
#include "kernels/vulkan/device/device_extensions.h"

namespace arn::vulkan {
namespace {

// Tokens of a prompt in a run. GPUs read each weight once per run; software drivers are bound by
// arithmetic, and answer a cancellation sooner.
constexpr uint32_t kGpuChunk = kMostChunkRows, kSoftwareChunk = 128, kShortChunk = 32;

// Names of a device's extensions.
class Extensions {
 public:
  Extensions(const Api& api, VkPhysicalDevice device) {
    const VkResult listed =
        api.EnumerateDeviceExtensionProperties(device, nullptr, &n_, extensions_);
    if (listed != VK_SUCCESS && listed != VK_INCOMPLETE) n_ = 0;
  }
  bool Has(const char* name) const {
    for (uint32_t i = 0; i < n_; ++i) {
      if (std::strcmp(extensions_[i].extensionName, name) == 0) return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kMost = 512;
  VkExtensionProperties extensions_[kMost];
  uint32_t n_ = kMost;
};

template <typename Struct>
void AskProperties(const Api& api, VkPhysicalDevice device, Struct* out) {
  VkPhysicalDeviceProperties2 all = {};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = out;
  api.GetPhysicalDeviceProperties2(device, &all);
}

template <typename Struct>
void AskFeatures(const Api& api, VkPhysicalDevice device, Struct* out) {
  VkPhysicalDeviceFeatures2 all = {};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  all.pNext = out;
  api.GetPhysicalDeviceFeatures2(device, &all);
}

void ReportSubgroups(const Api& api, VkPhysicalDevice device, const Extensions& extensions,
                     DeviceReport* out) {
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  VkPhysicalDeviceSubgroupProperties subgroup = {};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  AskProperties(api, device, &subgroup);
  out->subgroup_size = subgroup.subgroupSize;
  out->has_subgroups = (subgroup.supportedOperations & kNeeded) == kNeeded &&
                       (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  if (!extensions.Has(kSizesExtension)) return;
  VkPhysicalDeviceSubgroupSizeControlFeatures features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  AskFeatures(api, device, &features);
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  AskProperties(api, device, &sizes);
  out->has_full_subgroups = features.computeFullSubgroups == VK_TRUE;
  out->has_sized_subgroups =
      out->has_full_subgroups && features.subgroupSizeControl == VK_TRUE &&
      (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      sizes.minSubgroupSize <= out->subgroup_size && out->subgroup_size <= sizes.maxSubgroupSize;
}

// Returns the alignment of host memory that storage buffers can have; 0: they cannot.
uint64_t ImportAlign(const Api& api, VkPhysicalDevice device, const Extensions& extensions) {
  if (!extensions.Has(kImportExtension)) return 0;
  VkPhysicalDeviceExternalBufferInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkExternalBufferProperties buffers = {};
  buffers.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
  api.GetPhysicalDeviceExternalBufferProperties(device, &info, &buffers);
  constexpr VkExternalMemoryFeatureFlags kAsked =
      VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  if ((buffers.externalMemoryProperties.externalMemoryFeatures & kAsked) !=
      VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) {
    return 0;
  }
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {};
  host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  AskProperties(api, device, &host);
  return host.minImportedHostPointerAlignment;
}

bool HasCoop(const Api& api, VkPhysicalDevice device, const Extensions& extensions) {
  for (const char* name : kCoopExtensions) {
    if (!extensions.Has(name)) return false;
  }
  CoopFeatures features;
  AskFeatures(api, device, features.Chain());
  return features.memory_model.vulkanMemoryModel == VK_TRUE &&
         features.memory_model.vulkanMemoryModelDeviceScope == VK_TRUE &&
         features.int8.shaderInt8 == VK_TRUE && features.coop.cooperativeMatrix == VK_TRUE;
}

}  // namespace

DeviceReport ReportOf(const Api& api, VkPhysicalDevice device) {
  DeviceReport out;
  VkPhysicalDeviceProperties2 all = {};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  api.GetPhysicalDeviceProperties2(device, &all);
  out.properties = all.properties;
  // Older devices lack what the other questions need.
  if (out.properties.apiVersion < VK_API_VERSION_1_1) return out;
  const Extensions extensions(api, device);
  if (out.properties.apiVersion >= VK_API_VERSION_1_2 ||
      extensions.Has(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) {
    VkPhysicalDeviceDriverProperties driver = {};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    AskProperties(api, device, &driver);
    out.driver = driver.driverID;
  }
  ReportSubgroups(api, device, extensions, &out);
  if (extensions.Has(kDotExtension)) {
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
    dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    AskFeatures(api, device, &dot);
    out.has_dot = dot.shaderIntegerDotProduct == VK_TRUE;
  }
  out.import_align = ImportAlign(api, device, extensions);
  if (extensions.Has(kHalfExtension)) {
    VkPhysicalDeviceShaderFloat16Int8Features half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    AskFeatures(api, device, &half);
    out.has_half = half.shaderFloat16 == VK_TRUE;
  }
  out.has_coop = HasCoop(api, device, extensions);
  return out;
}

DeviceUse UseOf(const DeviceReport& report, uint32_t avoid) {
  const auto allows = [avoid](Avoid flag) { return (avoid & flag) == 0; };
  const VkPhysicalDeviceType type = report.properties.deviceType;
  const bool is_software = type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  DeviceUse use;
  use.subgroups = allows(kAvoidSubgroups) && report.has_subgroups && report.subgroup_size >= 4;
  use.full_subgroups = allows(kAvoidFullSubgroups) && use.subgroups && report.has_full_subgroups;
  use.sized_subgroups = use.full_subgroups && report.has_sized_subgroups;
  use.dot = allows(kAvoidDot) && report.has_dot;
  use.half = allows(kAvoidHalf) && report.has_half;
  use.coop = allows(kAvoidCoop) && use.full_subgroups && report.has_coop;
  use.unified =
      allows(kAvoidMapping) && (is_software || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
  // A device with memory of its own would read the weights over its bus each time.
  if (allows(kAvoidImport) && use.unified) use.import_align = report.import_align;
  use.chunk_rows = !allows(kAvoidLongRuns) ? kShortChunk : is_software ? kSoftwareChunk : kGpuChunk;
  return use;
}

}  // namespace arn::vulkan
