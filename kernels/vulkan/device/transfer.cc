#include "kernels/vulkan/device/transfer.h"

#include <cstring>

#include "kernels/vulkan/device/commands.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint64_t kLongestWaitNs = uint64_t{60} * 1000 * 1000 * 1000;

}  // namespace

Status WaitForFence(const Device& device, VkFence fence, Diag* diag) {
  const VkResult result =
      device.api().WaitForFences(device.handle(), 1, &fence, VK_TRUE, kLongestWaitNs);
  if (result == VK_SUCCESS) return Status::kOk;
  if (result == VK_TIMEOUT) {
    return diag->Fail(Status::kDeviceLost, "Vulkan: %s did not finish within %llu s", device.name(),
                      static_cast<unsigned long long>(kLongestWaitNs / 1000000000));
  }
  return CallError("WaitForFences(", result, diag);
}

Status Transfer::Open(const Device& device, VkCommandPool pool, Diag* diag) {
  const Api& api = device.api();
  ARN_TRY(CreateBuffer(device, BufferUse::kStaging, kStagingBytes, &staging_, diag));
  ARN_TRY(AllocateCommands(device, pool, 1, &commands_, diag));
  VkFenceCreateInfo fence = {};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  ARN_VK(api, CreateFence(device.handle(), &fence, device.callbacks(), &fence_), diag);
  return Status::kOk;
}

void Transfer::Close(const Device& device) {
  if (fence_ != VK_NULL_HANDLE) {
    device.api().DestroyFence(device.handle(), fence_, device.callbacks());
  }
  fence_ = VK_NULL_HANDLE;
  DestroyBuffer(device, &staging_);
}

Status Transfer::Copy(const Device& device, const Buffer& from, uint64_t from_offset,
                      const Buffer& to, uint64_t to_offset, uint64_t bytes, Diag* diag) {
  const Api& api = device.api();
  ARN_VK(api, ResetCommandBuffer(commands_, 0), diag);
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  ARN_VK(api, BeginCommandBuffer(commands_, &begin), diag);
  constexpr VkPipelineStageFlags kAround = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                           VK_PIPELINE_STAGE_TRANSFER_BIT |
                                           VK_PIPELINE_STAGE_HOST_BIT;
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask =
      VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  api.CmdPipelineBarrier(commands_, kAround, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
  const VkBufferCopy region = {from_offset, to_offset, bytes};
  api.CmdCopyBuffer(commands_, from.handle, to.handle, 1, &region);
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT;
  api.CmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, kAround, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
  ARN_VK(api, EndCommandBuffer(commands_), diag);
  VkSubmitInfo submit = {};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  ARN_VK(api, QueueSubmit(device.queue(), 1, &submit, fence_), diag);
  ARN_TRY(WaitForFence(device, fence_, diag));
  ARN_VK(api, ResetFences(device.handle(), 1, &fence_), diag);
  return Status::kOk;
}

Status Transfer::Flush(const Device& device, uint64_t from, const Buffer& to, uint64_t offset,
                       uint64_t bytes, Diag* diag) {
  return Copy(device, staging_, from, to, offset, bytes, diag);
}

Status Transfer::Write(const Device& device, const Buffer& to, uint64_t offset,
                       Span<const std::byte> from, Diag* diag) {
  if (to.mapped != nullptr) {
    std::memcpy(to.mapped + offset, from.data(), from.size());
    return Status::kOk;
  }
  for (uint64_t done = 0; done < from.size();) {
    const uint64_t n = Min(kStagingBytes, from.size() - done);
    std::memcpy(staging_.mapped, from.data() + done, n);
    ARN_TRY(Copy(device, staging_, 0, to, offset + done, n, diag));
    done += n;
  }
  return Status::kOk;
}

Status Transfer::Read(const Device& device, const Buffer& from, uint64_t offset, Span<std::byte> to,
                      Diag* diag) {
  if (from.mapped != nullptr) {
    std::memcpy(to.data(), from.mapped + offset, to.size());
    return Status::kOk;
  }
  for (uint64_t done = 0; done < to.size();) {
    const uint64_t n = Min(kStagingBytes, to.size() - done);
    ARN_TRY(Copy(device, from, offset + done, staging_, 0, n, diag));
    std::memcpy(to.data() + done, staging_.mapped, n);
    done += n;
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
