// Runs the steps with a device timestamp after each dispatch, for RunArgs::step_ns. Each run
// records its own commands: those that are replayed have no timestamps, which cost time on some
// devices.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/vulkan/replay/submissions.h"
#include "kernels/vulkan/replay/vulkan_state.h"

namespace arn::vulkan {

class TimedSteps final : public DispatchSink {
 public:
  // kind: of the run (RunKindOf). step_ns: as in RunArgs; the time of a
  // dispatch includes waiting for the one before it. cancel: as in RunArgs.
  // REQUIRES: the device has timestamps, and the run's words and grids are written.
  TimedSteps(State* state, uint32_t kind, bool is_encoder, const std::atomic<uint32_t>* cancel,
             uint64_t* step_ns, Submissions* submissions, Diag* diag)
      : s_(*state),
        kind_(kind),
        is_encoder_(is_encoder),
        cancel_(cancel),
        step_ns_(step_ns),
        submissions_(*submissions),
        diag_(diag) {}
  ~TimedSteps();

  // Runs and waits. Calls to the driver allocate.
  Status Run();

  Status BeginStep(uint32_t step) override;
  Status BeginEdits(uint32_t group) override;
  Status BeginChoice(uint32_t* n_dispatches) override;
  Status Add(const Dispatch& dispatch, Diag* diag) override;

 private:
  Status Open();
  Status BeginSegment();
  // Submits the segment, waits, and adds the times of its dispatches.
  Status EndSegment();
  bool IsPart() const { return is_steps_ && (step_ < s_.program->n_encoder_steps) == is_encoder_; }

  State& s_;
  const uint32_t kind_;
  const bool is_encoder_;
  const std::atomic<uint32_t>* const cancel_;
  uint64_t* const step_ns_;
  Submissions& submissions_;
  Diag* diag_;

  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkQueryPool times_ = VK_NULL_HANDLE;
  uint32_t n_ = 0;           // dispatches of the program so far
  uint32_t step_ = 0;        // the current one
  bool is_steps_ = true;     // the dispatches belong to steps
  uint32_t n_recorded_ = 0;  // dispatches of the segment
  // For each recorded dispatch.
  static constexpr uint32_t kMostRecorded = 128;
  VkDescriptorSet sets_[kMostRecorded] = {};
  uint32_t steps_[kMostRecorded] = {};
};

}  // namespace arn::vulkan
