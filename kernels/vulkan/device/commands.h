// Command pools and command buffers.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/device.h"

namespace arn::vulkan {

// Creates a pool for the device's queue family, whose buffers can be reset individually. The caller
// destroys the pool, which also frees its buffers.
Status CreateCommandPool(const Device& device, VkCommandPool* out, Diag* diag);
// Allocates primary command buffers. out: [n].
Status AllocateCommands(const Device& device, VkCommandPool pool, uint32_t n, VkCommandBuffer* out,
                        Diag* diag);

}  // namespace arn::vulkan
