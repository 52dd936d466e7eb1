// Creates pipelines, descriptor sets and command buffers: everything a run replays.
#include <cstring>

#include "kernels/vulkan/device/commands.h"
#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Stages that shaders synchronise with; includes indirect arguments, which sampling may zero.
constexpr VkPipelineStageFlags kShaderStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;

VkMemoryBarrier BetweenShaders() {
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  return barrier;
}

// Returns the buffer range of a place, rounded up to 16 bytes and clipped to the buffer.
VkDescriptorBufferInfo Shown(const State& s, const Place& place) {
  const Buffer* buffer = &s.run;
  switch (place.home) {
    case Home::kNone: return {s.run.handle, 0, s.run.bytes};
    case Home::kActivations: buffer = &s.activations; break;
    case Home::kWeights: buffer = &s.blocks[place.block]; break;
    case Home::kLogits: buffer = &s.logits; break;
    case Home::kRun: buffer = &s.run; break;
    case Home::kGrids: buffer = &s.grid_words; break;
    case Home::kChoice: buffer = &s.choice; break;
  }
  const uint64_t bytes = AlignUp(Max<uint64_t>(place.bytes, 1), 16);
  return {buffer->handle, place.offset, Min(bytes, buffer->bytes - place.offset)};
}

class Recorder final : public DispatchSink {
 public:
  Recorder(State* state, Diag* diag) : s_(*state), api_(state->device.api()), diag_(diag) {}

  Status BeginStep(uint32_t step) override {
    if (!BeginsSegment(*s_.program, step)) return Status::kOk;
    ARN_TRY(NextSegment());
    s_.segments[segment_].first_step = step;
    s_.segments[segment_].is_encoder = step < s_.program->n_encoder_steps;
    return Status::kOk;
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
    VkPipeline pipeline = VK_NULL_HANDLE;
    ARN_TRY(s_.pipelines.Find(s_.device, dispatch, &pipeline, diag_));
    ARN_TRY(BindSet(dispatch));
    GridOf& grid = s_.grids[n_];
    grid = {dispatch.rows,       dispatch.modes,     dispatch.row_tile,
            dispatch.row_factor, dispatch.first_row, dispatch.most_rows,
            dispatch.groups_x,   dispatch.groups_z,  dispatch.segments};
    uint32_t push[kMaxPushWords];
    dispatch.CopyPush(push);
    Segment& segment = s_.segments[segment_];
    for (uint32_t mode = 0; mode < kModeCount; ++mode) {
      if ((dispatch.modes >> mode & 1) == 0) continue;
      segment.work[mode] += dispatch.work;
      const VkCommandBuffer commands = segment.commands[mode];
      if (!dispatch.joins_previous) Barrier(commands);
      api_.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
      api_.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, s_.pipelines.layout(), 0,
                                 1, &set_, 0, nullptr);
      api_.CmdPushConstants(commands, s_.pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            dispatch.n_push * sizeof(uint32_t), push);
      api_.CmdDispatchIndirect(commands, s_.grid_words.handle,
                               n_ * sizeof(VkDispatchIndirectCommand));
    }
    ++n_;
    ++segment.n_dispatches;
    return Status::kOk;
  }

  Status EndSegment() {
    for (const VkCommandBuffer commands : s_.segments[segment_].commands) {
      // Makes writes visible to the host once the fence is signalled.
      VkMemoryBarrier barrier = BetweenShaders();
      barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
      api_.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                              VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
      ARN_VK(api_, EndCommandBuffer(commands), diag_);
    }
    ++segment_;
    return Status::kOk;
  }

 private:
  Status NextSegment() {
    if (has_segment_) ARN_TRY(EndSegment());
    has_segment_ = true;
    Segment& segment = s_.segments[segment_];
    segment.first_dispatch = n_;
    ARN_TRY(AllocateCommands(s_.device, s_.pool, kModeCount, segment.commands, diag_));
    for (uint32_t mode = 0; mode < kModeCount; ++mode) {
      const VkCommandBuffer commands = segment.commands[mode];
      VkCommandBufferBeginInfo begin = {};
      begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
      // Decode steps are submitted ahead: the same buffer may be pending several times.
      if (mode == static_cast<uint32_t>(Mode::kOne)) {
        begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
      }
      ARN_VK(api_, BeginCommandBuffer(commands, &begin), diag_);
      // Also orders this segment's first dispatch after the previous segments.
      VkMemoryBarrier barrier = BetweenShaders();
      barrier.dstAccessMask |= VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
      api_.CmdPipelineBarrier(commands, kShaderStages, kShaderStages, 0, 1, &barrier, 0, nullptr, 0,
                              nullptr);
    }
    return Status::kOk;
  }

  void Barrier(VkCommandBuffer commands) {
    const VkMemoryBarrier barrier = BetweenShaders();
    api_.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                            nullptr);
  }

  // Reuses the previous set if the places are the same, which is common.
  Status BindSet(const Dispatch& dispatch) {
    bool is_same = set_ != VK_NULL_HANDLE;
    for (uint32_t i = 0; i < 5; ++i) is_same = is_same && places_[i] == dispatch.places[i];
    if (is_same) return Status::kOk;
    for (uint32_t i = 0; i < 5; ++i) places_[i] = dispatch.places[i];
    VkDescriptorSetAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = s_.descriptors;
    info.descriptorSetCount = 1;
    const VkDescriptorSetLayout layout = s_.pipelines.set_layout();
    info.pSetLayouts = &layout;
    ARN_VK(api_, AllocateDescriptorSets(s_.device.handle(), &info, &set_), diag_);
    WriteSet(s_, dispatch, set_);
    return Status::kOk;
  }

  State& s_;
  const Api& api_;
  Diag* diag_;
  uint32_t n_ = 0, segment_ = 0;
  bool has_segment_ = false;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  Place places_[5];
};

}  // namespace

void WriteSet(const State& s, const Dispatch& dispatch, VkDescriptorSet set) {
  VkDescriptorBufferInfo buffers[kBindings];
  buffers[0] = {s.run.handle, 0, s.run.bytes};
  for (uint32_t i = 0; i < 5; ++i) buffers[1 + i] = Shown(s, dispatch.places[i]);
  const uint64_t window = uint64_t{sizeof(uint32_t)} << s.traits.window_shift;
  for (uint32_t i = 0; i < kKvWindows; ++i) {
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
  const Api& api = s.device.api();
  VkDescriptorPoolSize size = {};
  size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  size.descriptorCount = s.counts.n_sets * kBindings;
  VkDescriptorPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = s.counts.n_sets;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  ARN_VK(api, CreateDescriptorPool(s.device.handle(), &info, s.device.callbacks(), &s.descriptors),
         diag);
  Recorder recorder(state, diag);
  Lowering lowering(*s.program, s.weights, s.workspace, s.traits);
  ARN_TRY(lowering.Run(&recorder, diag));
  return recorder.EndSegment();
}

}  // namespace arn::vulkan
