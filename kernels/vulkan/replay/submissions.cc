#include "kernels/vulkan/replay/submissions.h"

namespace arn::vulkan {

Status Submissions::MarkLost(Status status) {
  s_.is_lost = true;
  return status;
}

Status Submissions::WaitForOne() {
  const auto flight = static_cast<uint32_t>(n_done_++ % kFlights);
  total_work_ -= work_[flight];
  if (s_.is_lost) return Status::kDeviceLost;
  const Status status = WaitForFence(s_.device, s_.fences[flight], diag_);
  if (status != Status::kOk) return MarkLost(status);
  const VkResult result = s_.device.api().ResetFences(s_.device.handle(), 1, &s_.fences[flight]);
  return result == VK_SUCCESS ? Status::kOk : MarkLost(CallError("ResetFences(", result, diag_));
}

Status Submissions::WaitFor(uint64_t number) {
  Status first = Status::kOk;
  while (n_done_ < number) {
    const Status status = WaitForOne();
    if (first == Status::kOk) first = status;
  }
  return first;
}

Status Submissions::Submit(const VkCommandBuffer* commands, uint32_t n, uint64_t work) {
  for (uint64_t under_way = n_made_ - n_done_;
       under_way == kFlights || (under_way > 1 && total_work_ + work > 2 * kMaxWork); --under_way) {
    ARN_TRY(WaitForOne());
  }
  const auto flight = static_cast<uint32_t>(n_made_ % kFlights);
  VkSubmitInfo submit = {};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = n;
  submit.pCommandBuffers = commands;
  const VkResult result =
      s_.device.api().QueueSubmit(s_.device.queue(), 1, &submit, s_.fences[flight]);
  if (result != VK_SUCCESS) return MarkLost(CallError("QueueSubmit(", result, diag_));
  work_[flight] = work;
  total_work_ += work;
  ++n_made_;
  return Status::kOk;
}

}  // namespace arn::vulkan
