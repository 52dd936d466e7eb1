// Copies between the host and device buffers: straight where they are mapped, otherwise through a
// staging buffer. It waits for each copy, and the queue has to be idle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/buffer.h"
#include "platform/base/span.h"

namespace arn::vulkan {

class Transfer {
 public:
  static constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

  Status Open(const Device& device, VkCommandPool pool, Diag* diag);
  void Close(const Device& device);

  Status Write(const Device& device, const Buffer& to, uint64_t offset, Span<const std::byte> from,
               Diag* diag);
  Status Read(const Device& device, const Buffer& from, uint64_t offset, Span<std::byte> to,
              Diag* diag);
  // Memory to build in what is to be written next, kStagingBytes of it; Flush() puts `bytes` of it
  // where they belong.
  std::byte* staging() const { return staging_.mapped; }
  Status Flush(const Device& device, const Buffer& to, uint64_t offset, uint64_t bytes, Diag* diag);
  // On the device. Both may be one buffer, where what is read is not written.
  Status Copy(const Device& device, const Buffer& from, uint64_t from_offset, const Buffer& to,
              uint64_t to_offset, uint64_t bytes, Diag* diag);

 private:
  Buffer staging_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

// Waits for a fence, at most as long as the longest submission may take. kDeviceLost, with the
// time, when that was not enough.
Status WaitForFence(const Device& device, VkFence fence, Diag* diag);

}  // namespace arn::vulkan
