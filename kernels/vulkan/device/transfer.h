// Copies between the host and device buffers: direct if mapped, else through a staging buffer.
// Blocks until each copy is done. REQUIRES: the queue is idle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/device/buffer.h"
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
  // Buffer of kStagingBytes in which to prepare writes. Flush() copies `bytes` of it, from `from`
  // on.
  std::byte* staging() const { return staging_.mapped; }
  Status Flush(const Device& device, uint64_t from, const Buffer& to, uint64_t offset,
               uint64_t bytes, Diag* diag);
  // Copies on the device. `from` and `to` may be the same buffer if the ranges do not overlap.
  Status Copy(const Device& device, const Buffer& from, uint64_t from_offset, const Buffer& to,
              uint64_t to_offset, uint64_t bytes, Diag* diag);

 private:
  Buffer staging_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

// Waits for a fence, up to the time limit of the longest submission. Returns kDeviceLost, with the
// time, on timeout.
Status WaitForFence(const Device& device, VkFence fence, Diag* diag);

}  // namespace arn::vulkan
