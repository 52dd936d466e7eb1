// Vulkan functions, looked up at run time so that nothing links to Vulkan. Each session has its own
// table, so nothing outlives it.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace arn::vulkan {

// clang-format off
#define ARN_VK_INSTANCE_FUNCTIONS(X)                                                           \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties)         \
  X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2)                                \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties)               \
  X(GetPhysicalDeviceExternalBufferProperties) X(CreateDevice) X(GetDeviceProcAddr)

#define ARN_VK_DEVICE_FUNCTIONS(X)                                                             \
  X(DestroyDevice) X(GetDeviceQueue) X(CreateBuffer) X(DestroyBuffer)                          \
  X(GetBufferMemoryRequirements) X(AllocateMemory) X(FreeMemory) X(BindBufferMemory)           \
  X(MapMemory) X(CreateShaderModule) X(DestroyShaderModule) X(CreateDescriptorSetLayout)       \
  X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) X(DestroyPipelineLayout)               \
  X(CreateComputePipelines) X(DestroyPipeline) X(CreateDescriptorPool)                         \
  X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)                   \
  X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(BeginCommandBuffer)   \
  X(EndCommandBuffer) X(ResetCommandBuffer) X(CmdBindPipeline) X(CmdBindDescriptorSets)        \
  X(CmdPushConstants) X(CmdDispatchIndirect) X(CmdPipelineBarrier) X(CmdCopyBuffer)            \
  X(CreateFence) X(DestroyFence) X(ResetFences) X(WaitForFences) X(QueueSubmit)                \
  X(DeviceWaitIdle) X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData)     \
  X(CmdDispatch) X(CreateQueryPool) X(DestroyQueryPool) X(CmdResetQueryPool)                   \
  X(CmdWriteTimestamp) X(GetQueryPoolResults)
// clang-format on

struct Api {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance CreateInstance = nullptr;
  PFN_vkEnumerateInstanceVersion EnumerateInstanceVersion = nullptr;
#define ARN_VK_DECLARE(name) PFN_vk##name name = nullptr;
  ARN_VK_INSTANCE_FUNCTIONS(ARN_VK_DECLARE)
  ARN_VK_DEVICE_FUNCTIONS(ARN_VK_DECLARE)
  ARN_VK_DECLARE(GetMemoryHostPointerPropertiesEXT)  // null: the device imports no memory
#undef ARN_VK_DECLARE
};

}  // namespace arn::vulkan
