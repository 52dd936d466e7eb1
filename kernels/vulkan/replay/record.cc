// Creates pipelines, descriptor sets and command buffers: everything a run replays.
#include "kernels/vulkan/replay/record.h"

#include <cstring>

#include "kernels/vulkan/device/commands.h"
#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Stages that shaders synchronise with; includes indirect arguments, which sampling may zero.
constexpr VkPipelineStageFlags kShaderStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;

// Returns the buffer range of a place, rounded up to 16 bytes and clipped to the buffer.
VkDescriptorBufferInfo Shown(const State& s, const Place& place) {
  const Buffer* buffer = &s.run;
  uint64_t offset = place.offset;
  switch (place.home) {
    case Home::kNone: return {s.run.handle, 0, s.run.bytes};
    case Home::kActivations: buffer = &s.ActivationsAt(&offset); break;
    case Home::kWeights: buffer = &s.blocks[place.block]; break;
    case Home::kLogits: buffer = &s.logits; break;
    case Home::kRun: buffer = &s.run; break;
    case Home::kGrids: buffer = &s.grid_words; break;
    case Home::kChoice: buffer = &s.choice; break;
    case Home::kArrivals: buffer = &s.arrivals; break;
  }
  const uint64_t bytes = AlignUp(Max<uint64_t>(place.bytes, 1), 16);
  return {buffer->handle, offset, Min(bytes, buffer->bytes - offset)};
}

class Recorder final : public DispatchSink {
 public:
  Recorder(State* state, Diag* diag)
      : s_(*state),
        api_(state->device.api()),
        diag_(diag),
        n_kinds_(state->short_positions() == 0 ? kModeCount : kRunKinds) {}

  Status BeginStep(uint32_t step) override {
    step_ = step;
    return BeginsSegment(*s_.program, step) ? BeginStepSegment() : Status::kOk;
  }

  Status BeginEdits(uint32_t) override {
    ARN_TRY(NextSegment());
    s_.segments[segment_].is_edit = true;
    return Status::kOk;
  }

  Status BeginChoice(uint32_t* n_dispatches) override {
    ARN_TRY(NextSegment());
    s_.segments[segment_].is_choice = true;
    *n_dispatches = n_;
    return Status::kOk;
  }

  Status Add(const Dispatch& dispatch, Diag*) override {
    if (n_ == s_.grids.size()) {
      return diag_->Fail(Status::kInternal, "Vulkan: more dispatches than planned");
    }
    if (dispatch.begins_segment) ARN_TRY(BeginStepSegment());
    VkPipeline pipeline = VK_NULL_HANDLE;
    ARN_TRY(s_.pipelines.Find(s_.device, dispatch, &pipeline, diag_));
    ARN_TRY(BindSet(dispatch));
    s_.grids[n_] = GridOf(dispatch);
    Segment& segment = s_.segments[segment_];
    for (uint32_t kind = 0; kind < n_kinds_; ++kind) {
      if (!dispatch.IsIn(kind)) continue;
      if (kind < kModeCount) segment.work[kind] += dispatch.work;
      const VkCommandBuffer commands = segment.commands[kind];
      if (!dispatch.joins_previous) AddBarrier(api_, commands, BarrierTo::kDispatch);
      RecordDispatch(s_, dispatch, n_, pipeline, set_, commands);
    }
    ++n_;
    ++segment.n_dispatches;
    return Status::kOk;
  }

  Status EndSegment() {
    for (uint32_t kind = 0; kind < n_kinds_; ++kind) {
      const VkCommandBuffer commands = s_.segments[segment_].commands[kind];
      AddBarrier(api_, commands, BarrierTo::kHost);
      ARN_VK(api_, EndCommandBuffer(commands), diag_);
    }
    ++segment_;
    return Status::kOk;
  }

 private:
  // Begins the segment of what follows in the current step, and of those after it.
  Status BeginStepSegment() {
    ARN_TRY(NextSegment());
    s_.segments[segment_].first_step = step_;
    s_.segments[segment_].is_encoder = step_ < s_.program->n_encoder_steps;
    return Status::kOk;
  }

  Status NextSegment() {
    if (has_segment_) ARN_TRY(EndSegment());
    has_segment_ = true;
    Segment& segment = s_.segments[segment_];
    segment.first_dispatch = n_;
    ARN_TRY(AllocateCommands(s_.device, s_.pool, n_kinds_, segment.commands, diag_));
    for (uint32_t kind = 0; kind < n_kinds_; ++kind) {
      const VkCommandBuffer commands = segment.commands[kind];
      VkCommandBufferBeginInfo begin = {};
      begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
      // Decode steps are submitted ahead: the same buffer may be pending several times.
      if (ModeOfKind(kind) == static_cast<uint32_t>(Mode::kOne)) {
        begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
      }
      ARN_VK(api_, BeginCommandBuffer(commands, &begin), diag_);
      AddBarrier(api_, commands, BarrierTo::kSegment);
    }
    return Status::kOk;
  }

  // Reuses the previous set if the places are the same, which is common.
  Status BindSet(const Dispatch& dispatch) {
    bool is_same = set_ != VK_NULL_HANDLE;
    for (uint32_t i = 0; i < kPlaces; ++i) is_same = is_same && places_[i] == dispatch.places[i];
    if (is_same) return Status::kOk;
    for (uint32_t i = 0; i < kPlaces; ++i) places_[i] = dispatch.places[i];
    ARN_TRY(AllocateSet(s_, s_.descriptors, &set_, diag_));
    WriteSet(s_, dispatch, set_);
    return Status::kOk;
  }

  State& s_;
  const Api& api_;
  Diag* diag_;
  const uint32_t n_kinds_;  // of runs
  uint32_t n_ = 0, segment_ = 0, step_ = 0;
  bool has_segment_ = false;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  Place places_[kPlaces];
};

}  // namespace

void AddBarrier(const Api& api, VkCommandBuffer commands, BarrierTo to) {
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  VkPipelineStageFlags from = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, until = from;
  if (to == BarrierTo::kSegment) {
    from = until = kShaderStages;
    barrier.dstAccessMask |= VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
  } else if (to == BarrierTo::kHost) {
    until = VK_PIPELINE_STAGE_HOST_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
  }
  api.CmdPipelineBarrier(commands, from, until, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Status CreateSetPool(const State& s, uint32_t n, VkDescriptorPool* out, Diag* diag) {
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n * kBindings};
  VkDescriptorPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = n;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  const Device& device = s.device;
  ARN_VK(device.api(), CreateDescriptorPool(device.handle(), &info, device.callbacks(), out), diag);
  return Status::kOk;
}

Status CreateTimes(const State& s, uint32_t n, VkQueryPool* out, Diag* diag) {
  VkQueryPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = n;
  const Device& device = s.device;
  ARN_VK(device.api(), CreateQueryPool(device.handle(), &info, device.callbacks(), out), diag);
  return Status::kOk;
}

Status AllocateSet(const State& s, VkDescriptorPool pool, VkDescriptorSet* out, Diag* diag) {
  VkDescriptorSetAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = pool;
  info.descriptorSetCount = 1;
  const VkDescriptorSetLayout layout = s.pipelines.set_layout();
  info.pSetLayouts = &layout;
  ARN_VK(s.device.api(), AllocateDescriptorSets(s.device.handle(), &info, out), diag);
  return Status::kOk;
}

void BindDispatch(const State& s, const Dispatch& dispatch, VkPipeline pipeline,
                  VkDescriptorSet set, VkCommandBuffer commands) {
  const Api& api = s.device.api();
  uint32_t push[kMaxPushWords];
  dispatch.CopyPush(push);
  api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, s.pipelines.layout(), 0, 1,
                            &set, 0, nullptr);
  api.CmdPushConstants(commands, s.pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       dispatch.n_push * sizeof(uint32_t), push);
}

void RecordDispatch(const State& s, const Dispatch& dispatch, uint32_t index, VkPipeline pipeline,
                    VkDescriptorSet set, VkCommandBuffer commands) {
  BindDispatch(s, dispatch, pipeline, set, commands);
  s.device.api().CmdDispatchIndirect(commands, s.grid_words.handle,
                                     index * sizeof(VkDispatchIndirectCommand));
}

void WriteSet(const State& s, const Dispatch& dispatch, VkDescriptorSet set) {
  VkDescriptorBufferInfo buffers[kBindings];
  buffers[0] = {s.run.handle, 0, s.run.bytes};
  for (uint32_t i = 0; i < kPlaces; ++i) buffers[1 + i] = Shown(s, dispatch.places[i]);
  buffers[1 + kPlaces] = {s.arrivals.handle, 0, s.arrivals.bytes};
  const uint64_t window = uint64_t{sizeof(uint32_t)} << s.traits.window_shift;
  for (uint32_t i = 0; i < kKvWindows; ++i) {
    if (dispatch.places[5 + i].home != Home::kNone) continue;
    const uint64_t first = i < s.traits.n_windows ? i * window : 0;
    const uint64_t bytes = s.traits.n_windows == 1 ? s.kv.bytes : Min(window, s.kv.bytes - first);
    buffers[6 + i] = {s.kv.handle, first, bytes};
  }
  VkWriteDescriptorSet write = {};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorCount = kBindings;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers;
  s.device.api().UpdateDescriptorSets(s.device.handle(), 1, &write, 0, nullptr);
}

bool BeginsSegment(const Program& program, uint32_t step) {
  return step == 0 || step == program.n_encoder_steps ||
         program.steps[step].layer != program.steps[step - 1].layer;
}

Status Record(State* state, Diag* diag) {
  State& s = *state;
  ARN_TRY(CreateSetPool(s, s.counts.n_sets, &s.descriptors, diag));
  Recorder recorder(state, diag);
  Lowering lowering(*s.program, s.weights, s.workspace, s.traits);
  ARN_TRY(lowering.Run(&recorder, diag));
  return recorder.EndSegment();
}

}  // namespace arn::vulkan
