// Replays recorded steps. Base of runs and of decode.
#pragma once

#include <cstdint>

#include "kernels/vulkan/replay/submissions.h"
#include "kernels/vulkan/replay/vulkan_state.h"

namespace arn::vulkan {

class Execution {
 public:
  // sequences: the positions of all rows, including those of later steps; rows: of one step.
  Execution(State* state, Span<const SequenceRows> sequences, uint32_t rows, uint32_t logit_rows,
            bool is_encoder, Diag* diag)
      : s_(*state),
        submissions_(state, diag),
        sequences_(sequences),
        rows_(rows),
        logit_rows_(logit_rows),
        is_encoder_(is_encoder),
        diag_(diag) {
    mode_ = kind_ = static_cast<uint32_t>(ModeOf(rows));
  }

 protected:
  ~Execution() = default;

  // Called before each submission of steps. Any status but kOk ends them.
  virtual Status BeforeSubmission() = 0;

  bool IsPart(const Segment& segment) const {
    return !segment.is_edit && !segment.is_choice && segment.is_encoder == is_encoder_;
  }
  // Chooses the commands for a decoder's run whose first row is at the position.
  void MoveTo(uint32_t position) { kind_ = RunKindOf(rows_, position, s_.short_positions()); }
  // Writes the grids of the mode, in contexts of any length.
  void WriteGrids();
  // Submits all steps, then `then` if not null. step_ns: as in RunArgs.
  Status SubmitSteps(VkCommandBuffer then, uint64_t* step_ns);

  State& s_;
  Submissions submissions_;
  const Span<const SequenceRows> sequences_;
  const uint32_t rows_, logit_rows_;
  const bool is_encoder_;
  Diag* diag_;
  uint32_t mode_ = 0, kind_ = 0;
  uint32_t pooled_rows_ = 0;
  bool sees_ahead_ = false;
};

}  // namespace arn::vulkan
