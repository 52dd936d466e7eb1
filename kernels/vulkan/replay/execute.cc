#include "kernels/contract/check.h"
#include "kernels/vulkan/replay/execution.h"
#include "kernels/vulkan/replay/timed_steps.h"
#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn::vulkan {
namespace {

class RunExecution final : public Execution {
 public:
  RunExecution(State* state, const RunArgs& args, uint32_t n_logit_rows, Diag* diag)
      : Execution(state, args.sequences, RunRows(args), n_logit_rows, args.is_encoder, diag),
        args_(args) {
    sees_ahead_ = args.mask != nullptr;
    if (args.is_encoder) {
      pooled_rows_ = PooledRows(*state->program, args);
    } else {
      MoveTo(args.sequences[0].first_position);
    }
  }

  Status Run() {
    WriteGrids();
    const bool has_timestamps = s_.device.timestamp_bits() != 0;
    const Status status =
        args_.step_ns != nullptr && has_timestamps
            ? TimedSteps(&s_, kind_, is_encoder_, args_.cancel, args_.step_ns, &submissions_, diag_)
                  .Run()
            : SubmitSteps(VK_NULL_HANDLE, args_.step_ns);
    const Status waited = submissions_.WaitForAll();
    return status != Status::kOk ? status : waited;
  }

 private:
  Status BeforeSubmission() override {
    const bool is_cancelled =
        args_.cancel != nullptr && args_.cancel->load(std::memory_order_relaxed) != 0;
    return is_cancelled ? Status::kCancelled : Status::kOk;
  }

  const RunArgs& args_;
};

}  // namespace

void Execution::WriteGrids() {
  auto* commands = reinterpret_cast<VkDispatchIndirectCommand*>(s_.grid_words.mapped);
  const auto n_sequences = static_cast<uint32_t>(sequences_.size());
  const RowCounts counts = {rows_, pooled_rows_, logit_rows_, n_sequences};
  for (const Segment& segment : s_.segments) {
    if (!IsPart(segment)) continue;
    for (uint32_t i = 0; i < segment.n_dispatches; ++i) {
      const GridOf& grid = s_.grids[segment.first_dispatch + i];
      if ((grid.modes >> mode_ & 1) == 0) continue;
      VkDispatchIndirectCommand& command = commands[segment.first_dispatch + i];
      const uint32_t rows = RowsOf(grid, counts);
      command = {grid.groups_x, static_cast<uint32_t>(CeilDiv(rows, grid.row_tile)), grid.groups_z};
      if (grid.segments.positions == 0) continue;
      const uint32_t n_segments = CountSegments(grid.segments, sequences_, rows_, sees_ahead_);
      const bool is_merge = grid.rows == GridRows::kShared;
      if (is_merge && n_segments == 1) command.y = 0;
      if (!is_merge) command.z = n_segments;
    }
  }
}

Status Execution::SubmitSteps(VkCommandBuffer then, uint64_t* step_ns) {
  VkCommandBuffer commands[Submissions::kMaxBuffers + 1];
  uint32_t n = 0;
  uint64_t work = 0;
  uint64_t last = step_ns == nullptr ? 0 : MonotonicNs();
  for (const Segment& segment : s_.segments) {
    if (!IsPart(segment)) continue;
    // Only if more follows: the last submission must not be empty.
    if (n == Submissions::kMaxBuffers || work >= Submissions::kMaxWork) {
      ARN_TRY(BeforeSubmission());
      ARN_TRY(submissions_.Submit(commands, n, work));
      n = 0;
      work = 0;
    }
    commands[n++] = segment.commands[kind_];
    work += segment.work[mode_] * rows_;
    if (step_ns == nullptr) continue;
    ARN_TRY(BeforeSubmission());
    ARN_TRY(submissions_.Submit(commands, n, work));
    ARN_TRY(submissions_.WaitForAll());
    n = 0;
    work = 0;
    const uint64_t now = MonotonicNs();
    const uint32_t first = is_encoder_ ? 0 : s_.program->n_encoder_steps;
    step_ns[segment.first_step - first] += now - last;
    last = now;
  }
  if (then != VK_NULL_HANDLE) commands[n++] = then;
  if (n == 0) return Status::kOk;
  ARN_TRY(BeforeSubmission());
  return submissions_.Submit(commands, n, work);
}

// Submits one dispatch.
Status ExecuteEdits(State* state, uint32_t group, uint32_t n_edits, Diag* diag) {
  State& s = *state;
  const size_t n_groups = s.program->kv_groups.size();
  const Segment& segment = s.segments[s.segments.size() - n_groups + group];
  auto* commands = reinterpret_cast<VkDispatchIndirectCommand*>(s.grid_words.mapped);
  const GridOf& grid = s.grids[segment.first_dispatch];
  commands[segment.first_dispatch] = {grid.groups_x, n_edits, grid.groups_z};
  Submissions submissions(state, diag);
  const Status status = submissions.Submit(segment.commands, 1, 0);
  const Status waited = submissions.WaitForAll();
  return status != Status::kOk ? status : waited;
}

Status Execute(State* state, const RunArgs& args, uint32_t n_logit_rows, Diag* diag) {
  return RunExecution(state, args, n_logit_rows, diag).Run();
}

}  // namespace arn::vulkan
