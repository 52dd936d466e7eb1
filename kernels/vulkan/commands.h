// Where commands are recorded: pools and their buffers.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device.h"

namespace arn::vulkan {

// Of the device's queue family; its buffers can be recorded again one by one. The caller destroys
// it, and its buffers with it.
Status CreateCommandPool(const Device& device, VkCommandPool* out, Diag* diag);
// out: [n], primary.
Status AllocateCommands(const Device& device, VkCommandPool pool, uint32_t n, VkCommandBuffer* out,
                        Diag* diag);

}  // namespace arn::vulkan
