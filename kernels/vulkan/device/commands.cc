#include "kernels/vulkan/device/commands.h"

namespace arn::vulkan {

Status CreateCommandPool(const Device& device, VkCommandPool* out, Diag* diag) {
  VkCommandPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device.queue_family();
  ARN_VK(device.api(), CreateCommandPool(device.handle(), &info, device.callbacks(), out), diag);
  return Status::kOk;
}

Status AllocateCommands(const Device& device, VkCommandPool pool, uint32_t n, VkCommandBuffer* out,
                        Diag* diag) {
  VkCommandBufferAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = n;
  ARN_VK(device.api(), AllocateCommandBuffers(device.handle(), &info, out), diag);
  return Status::kOk;
}

}  // namespace arn::vulkan
