#include "kernels/vulkan/replay/matmul_meter.h"

#include "kernels/vulkan/device/commands.h"
#include "kernels/vulkan/replay/record.h"
#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn::vulkan {
namespace {

// Runs per measurement after a warm-up run; the fastest counts.
constexpr uint32_t kTimedRuns = 2;

}  // namespace

Status DeviceMeter::Open(Diag* diag) {
  ARN_TRY(CreateCommandPool(s_.device, &pool_, diag));
  ARN_TRY(AllocateCommands(s_.device, pool_, 1, &commands_, diag));
  ARN_TRY(CreateSetPool(s_, kMostTimed, &descriptors_, diag));
  for (VkDescriptorSet& set : sets_) ARN_TRY(AllocateSet(s_, descriptors_, &set, diag));
  if (s_.device.timestamp_bits() == 0) return Status::kOk;
  return CreateTimes(s_, 2, &times_, diag);
}

void DeviceMeter::Close() {
  const Device& device = s_.device;
  const Api& api = device.api();
  if (times_ != VK_NULL_HANDLE) api.DestroyQueryPool(device.handle(), times_, device.callbacks());
  if (descriptors_ != VK_NULL_HANDLE) {
    api.DestroyDescriptorPool(device.handle(), descriptors_, device.callbacks());
  }
  if (pool_ != VK_NULL_HANDLE) api.DestroyCommandPool(device.handle(), pool_, device.callbacks());
}

uint64_t DeviceMeter::NowNs() { return MonotonicNs(); }

Status DeviceMeter::RecordOnce(Span<const Dispatch> dispatches, uint32_t rows, VkPipeline pipeline,
                               Diag* diag) {
  const Api& api = s_.device.api();
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  ARN_VK(api, BeginCommandBuffer(commands_, &begin), diag);
  if (times_ != VK_NULL_HANDLE) {
    api.CmdResetQueryPool(commands_, times_, 0, 2);
    api.CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, times_, 0);
  }
  for (uint32_t i = 0; i < dispatches.size(); ++i) {
    const Dispatch& d = dispatches[i];
    WriteSet(s_, d, sets_[i]);
    AddBarrier(api, commands_, BarrierTo::kDispatch);
    BindDispatch(s_, d, pipeline, sets_[i], commands_);
    const auto groups_y = static_cast<uint32_t>(CeilDiv(rows * d.row_factor, d.row_tile));
    api.CmdDispatch(commands_, d.groups_x, groups_y, d.groups_z);
  }
  if (times_ != VK_NULL_HANDLE) {
    api.CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times_, 1);
  }
  ARN_VK(api, EndCommandBuffer(commands_), diag);
  return Status::kOk;
}

Status DeviceMeter::RunOnce(uint64_t* ns, Diag* diag) {
  const Device& device = s_.device;
  const Api& api = device.api();
  VkSubmitInfo submit = {};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  const uint64_t begin = MonotonicNs();
  ARN_VK(api, QueueSubmit(device.queue(), 1, &submit, s_.fences[0]), diag);
  ARN_TRY(WaitForFence(device, s_.fences[0], diag));
  *ns = MonotonicNs() - begin;
  ARN_VK(api, ResetFences(device.handle(), 1, &s_.fences[0]), diag);
  if (times_ == VK_NULL_HANDLE) return Status::kOk;
  uint64_t ticks[2] = {};
  ARN_VK(api,
         GetQueryPoolResults(device.handle(), times_, 0, 2, sizeof ticks, ticks, sizeof ticks[0],
                             VK_QUERY_RESULT_64_BIT),
         diag);
  *ns = device.TicksToNs(ticks[1] - ticks[0]);
  return Status::kOk;
}

Status DeviceMeter::MeasureWith(VkPipeline pipeline, Span<const Dispatch> dispatches, uint32_t rows,
                                uint64_t* ns, Diag* diag) {
  ARN_TRY(RecordOnce(dispatches, rows, pipeline, diag));
  *ns = UINT64_MAX;
  for (uint32_t i = 0; i <= kTimedRuns; ++i) {
    uint64_t took = 0;
    ARN_TRY(RunOnce(&took, diag));
    if (i != 0) *ns = Min(*ns, took);
  }
  return Status::kOk;
}

Status DeviceMeter::Measure(Span<const Dispatch> dispatches, uint32_t rows, uint64_t* ns,
                            Diag* diag) {
  const Device& device = s_.device;
  VkPipeline pipeline = VK_NULL_HANDLE;
  Diag inner;
  if (s_.pipelines.Make(device, dispatches[0], false, &pipeline, &inner) != Status::kOk) {
    return Status::kUnsupported;
  }
  RunWords::WriteRows(rows, s_.run_words());
  const Status status = MeasureWith(pipeline, dispatches, rows, ns, diag);
  RunWords::WriteRows(0, s_.run_words());
  if (status != Status::kOk) {
    s_.is_lost = true;
    (void)device.api().DeviceWaitIdle(device.handle());
  }
  device.api().DestroyPipeline(device.handle(), pipeline, device.callbacks());
  return status;
}

}  // namespace arn::vulkan
