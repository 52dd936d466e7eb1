#include "kernels/vulkan/replay/timed_steps.h"

#include "kernels/vulkan/device/commands.h"
#include "kernels/vulkan/replay/record.h"

namespace arn::vulkan {

TimedSteps::~TimedSteps() {
  const Device& device = s_.device;
  const Api& api = device.api();
  if (times_ != VK_NULL_HANDLE) api.DestroyQueryPool(device.handle(), times_, device.callbacks());
  if (descriptors_ != VK_NULL_HANDLE) {
    api.DestroyDescriptorPool(device.handle(), descriptors_, device.callbacks());
  }
  if (pool_ != VK_NULL_HANDLE) api.DestroyCommandPool(device.handle(), pool_, device.callbacks());
}

Status TimedSteps::Open() {
  ARN_TRY(CreateCommandPool(s_.device, &pool_, diag_));
  ARN_TRY(AllocateCommands(s_.device, pool_, 1, &commands_, diag_));
  ARN_TRY(CreateSetPool(s_, kMostRecorded, &descriptors_, diag_));
  for (VkDescriptorSet& set : sets_) ARN_TRY(AllocateSet(s_, descriptors_, &set, diag_));
  return CreateTimes(s_, kMostRecorded + 1, &times_, diag_);
}

Status TimedSteps::Run() {
  ARN_TRY(Open());
  ARN_TRY(BeginSegment());
  Lowering lowering(*s_.program, s_.weights, s_.workspace, s_.traits);
  ARN_TRY(lowering.Run(this, diag_));
  return EndSegment();
}

Status TimedSteps::BeginSegment() {
  const Device& device = s_.device;
  const Api& api = device.api();
  n_recorded_ = 0;
  ARN_VK(api, ResetCommandBuffer(commands_, 0), diag_);
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  ARN_VK(api, BeginCommandBuffer(commands_, &begin), diag_);
  api.CmdResetQueryPool(commands_, times_, 0, kMostRecorded + 1);
  AddBarrier(api, commands_, BarrierTo::kSegment);
  api.CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times_, 0);
  return Status::kOk;
}

Status TimedSteps::EndSegment() {
  if (n_recorded_ == 0) return Status::kOk;
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed) != 0) {
    return Status::kCancelled;
  }
  const Device& device = s_.device;
  const Api& api = device.api();
  AddBarrier(api, commands_, BarrierTo::kHost);
  ARN_VK(api, EndCommandBuffer(commands_), diag_);
  ARN_TRY(submissions_.Submit(&commands_, 1, 0));
  ARN_TRY(submissions_.WaitForAll());
  uint64_t ticks[kMostRecorded + 1] = {};
  ARN_VK(api,
         GetQueryPoolResults(device.handle(), times_, 0, n_recorded_ + 1, sizeof ticks, ticks,
                             sizeof ticks[0], VK_QUERY_RESULT_64_BIT),
         diag_);
  for (uint32_t i = 0; i < n_recorded_; ++i) {
    step_ns_[steps_[i]] += device.TicksToNs(ticks[i + 1] - ticks[i]);
  }
  n_recorded_ = 0;
  return Status::kOk;
}

Status TimedSteps::BeginStep(uint32_t step) {
  if (BeginsSegment(*s_.program, step) && n_recorded_ != 0) {
    ARN_TRY(EndSegment());
    ARN_TRY(BeginSegment());
  }
  step_ = step;
  return Status::kOk;
}

Status TimedSteps::BeginEdits(uint32_t) {
  is_steps_ = false;
  return Status::kOk;
}

Status TimedSteps::BeginChoice(uint32_t* n_dispatches) {
  is_steps_ = false;
  *n_dispatches = n_;
  return Status::kOk;
}

Status TimedSteps::Add(const Dispatch& dispatch, Diag*) {
  const uint32_t index = n_++;
  if (!IsPart() || !dispatch.IsIn(kind_)) return Status::kOk;
  if (n_recorded_ == kMostRecorded) {
    ARN_TRY(EndSegment());
    ARN_TRY(BeginSegment());
  }
  const Api& api = s_.device.api();
  const VkDescriptorSet set = sets_[n_recorded_];
  WriteSet(s_, dispatch, set);
  VkPipeline pipeline = VK_NULL_HANDLE;
  ARN_TRY(s_.pipelines.Find(s_.device, dispatch, &pipeline, diag_));
  if (!dispatch.joins_previous) AddBarrier(api, commands_, BarrierTo::kDispatch);
  RecordDispatch(s_, dispatch, index, pipeline, set, commands_);
  steps_[n_recorded_++] = step_ - (is_encoder_ ? 0 : s_.program->n_encoder_steps);
  api.CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times_, n_recorded_);
  return Status::kOk;
}

}  // namespace arn::vulkan
