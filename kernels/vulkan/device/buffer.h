// Vulkan buffers, each with its own device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/device/device.h"

namespace arn::vulkan {

enum class BufferUse : uint8_t {
  kDevice,    // read and written by shaders; mapped if memory is unified
  kShared,    // the same, and also accessed by the host if mapped
  kFromHost,  // written by the host, read by shaders and as indirect dispatch arguments; mapped
  kToHost,    // written by shaders, read by the host; mapped
  kStaging,   // source and destination of copies; mapped
};

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;
  std::byte* mapped = nullptr;  // null: not mapped
  bool is_cached = false;       // mapped with host caching
  // Pages of the bundle whose bytes it has; null: converted weights, or no weights.
  const std::byte* pages = nullptr;
  bool is_imported = false;  // its memory is those pages
};

// Creates a buffer of at least 256 bytes. Returns kOutOfMemory if the device is out of memory,
// kUnsupported if it allows no buffer of that size.
Status CreateBuffer(const Device& device, BufferUse use, uint64_t bytes, Buffer* out, Diag* diag);
// Creates a buffer for shaders to read whose memory is that of the host from `pages` on, without a
// copy. Returns false if the device imports no memory there: then nothing is left behind. The
// host's memory must outlive the buffer and may be read-only. readable: bytes from `pages` on that
// may be read, >= bytes.
bool ImportBuffer(const Device& device, const std::byte* pages, uint64_t bytes, uint64_t readable,
                  Buffer* out);
void DestroyBuffer(const Device& device, Buffer* buffer);

}  // namespace arn::vulkan
