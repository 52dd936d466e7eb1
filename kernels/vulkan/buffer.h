// Buffers with memory of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/device.h"

namespace arn::vulkan {

enum class BufferUse : uint8_t {
  kDevice,    // what shaders read and write; mapped where memory is unified
  kShared,    // the same, and the host reads or computes on it too, where it is mapped
  kFromHost,  // written by the host, read by shaders and as arguments of dispatches; mapped
  kToHost,    // written by shaders, read by the host; mapped
  kStaging,   // copied from and to; mapped
};

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;
  std::byte* mapped = nullptr;  // null: the host does not see it
  bool is_cached = false;       // mapped, and the host reads it through its caches
};

// At least 256 bytes. kOutOfMemory when the device has no room, kUnsupported when it allows no
// buffer of that size.
Status CreateBuffer(const Device& device, BufferUse use, uint64_t bytes, Buffer* out, Diag* diag);
void DestroyBuffer(const Device& device, Buffer* buffer);

}  // namespace arn::vulkan
