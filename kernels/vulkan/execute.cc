// Replays the recorded steps.
#include "kernels/check.h"
#include "kernels/vulkan/state.h"
#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn::vulkan {
namespace {

// Multiplications in one submission at most: some tens of milliseconds on a small device, which has
// to answer others too, and the longest that a cancelled run goes on.
constexpr uint64_t kMaxWork = uint64_t{1} << 30;
constexpr uint32_t kMaxSegmentsAtOnce = 32;

uint32_t GroupsY(const GridOf& grid, uint32_t rows, uint32_t logit_rows) {
  uint32_t n = rows * grid.row_factor;
  if (grid.rows != GridRows::kRun && grid.rows != GridRows::kShared) {
    n = logit_rows > grid.first_row ? Min(logit_rows - grid.first_row, grid.most_rows) : 0;
    const bool is_few = logit_rows <= kFewRows;
    if (grid.rows == GridRows::kFewLogits && !is_few) n = 0;
    if (grid.rows == GridRows::kManyLogits && is_few) n = 0;
  }
  return static_cast<uint32_t>(CeilDiv(n, grid.row_tile));
}

class Execution {
 public:
  Execution(State* state, const RunArgs& args, uint32_t n_logit_rows, Diag* diag)
      : s_(*state), args_(args), logit_rows_(n_logit_rows), rows_(RunRows(args)), diag_(diag) {
    mode_ = rows_ == 1 ? 0 : rows_ <= kFewRows ? 1 : 2;
  }

  Status Run() {
    WriteGrids();
    // What was submitted is waited for in any case: it writes what the next run writes.
    const Status status = SubmitAll();
    const Status waited = WaitForAll();
    return status != Status::kOk ? status : waited;
  }

  // The edits of a group: one dispatch.
  Status RunEdits(uint32_t group, uint32_t n_edits) {
    const size_t n_groups = s_.program->kv_groups.size();
    const Segment& segment = s_.segments[s_.segments.size() - n_groups + group];
    auto* commands = reinterpret_cast<VkDispatchIndirectCommand*>(s_.grid_words.mapped);
    const GridOf& grid = s_.grids[segment.first_dispatch];
    commands[segment.first_dispatch] = {grid.groups_x, n_edits, grid.groups_z};
    const Status status = Submit(segment.commands, 1);
    const Status waited = WaitForAll();
    return status != Status::kOk ? status : waited;
  }

 private:
  VkDispatchIndirectCommand CommandOf(const GridOf& grid) const {
    VkDispatchIndirectCommand command = {grid.groups_x, GroupsY(grid, rows_, logit_rows_),
                                         grid.groups_z};
    if (grid.segments.positions == 0) return command;
    const uint32_t n_segments = CountSegments(grid.segments, args_);
    const bool is_merge = grid.rows == GridRows::kShared;
    if (is_merge && n_segments == 1) command.y = 0;
    if (!is_merge) command.z = n_segments;
    return command;
  }

  bool IsPart(const Segment& segment) const {
    return !segment.is_edit && segment.is_source == args_.is_source;
  }

  void WriteGrids() {
    auto* commands = reinterpret_cast<VkDispatchIndirectCommand*>(s_.grid_words.mapped);
    for (const Segment& segment : s_.segments) {
      if (!IsPart(segment)) continue;
      for (uint32_t i = 0; i < segment.n_dispatches; ++i) {
        const GridOf& grid = s_.grids[segment.first_dispatch + i];
        if ((grid.modes >> mode_ & 1) == 0) continue;
        commands[segment.first_dispatch + i] = CommandOf(grid);
      }
    }
  }

  Status SubmitAll() {
    VkCommandBuffer commands[kMaxSegmentsAtOnce];
    uint32_t n = 0;
    uint64_t work = 0;
    uint64_t last = args_.step_ns == nullptr ? 0 : MonotonicNs();
    for (const Segment& segment : s_.segments) {
      if (!IsPart(segment)) continue;
      commands[n++] = segment.commands[mode_];
      work += segment.work[mode_] * rows_;
      const bool is_enough = work >= kMaxWork || n == kMaxSegmentsAtOnce;
      if (!is_enough && args_.step_ns == nullptr) continue;
      ARN_TRY(Submit(commands, n));
      n = 0;
      work = 0;
      if (args_.step_ns == nullptr) continue;
      ARN_TRY(WaitForAll());
      const uint64_t now = MonotonicNs();
      const uint32_t first = args_.is_source ? 0 : s_.program->n_source_steps;
      args_.step_ns[segment.first_step - first] += now - last;
      last = now;
    }
    return n == 0 ? Status::kOk : Submit(commands, n);
  }

  Status Submit(const VkCommandBuffer* commands, uint32_t n) {
    if (args_.cancel != nullptr && args_.cancel->load(std::memory_order_relaxed) != 0) {
      return Status::kCancelled;
    }
    const uint32_t flight = next_++ % kFlights;
    if (is_flying_[flight]) ARN_TRY(Wait(flight));
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = n;
    submit.pCommandBuffers = commands;
    const VkResult result =
        s_.device.api().QueueSubmit(s_.device.queue(), 1, &submit, s_.fences[flight]);
    if (result != VK_SUCCESS) return Lost(FailedCall("QueueSubmit(", result, diag_));
    is_flying_[flight] = true;
    return Status::kOk;
  }

  Status Wait(uint32_t flight) {
    is_flying_[flight] = false;
    const Status status = WaitForFence(s_.device, s_.fences[flight], diag_);
    if (status != Status::kOk) return Lost(status);
    const VkResult result = s_.device.api().ResetFences(s_.device.handle(), 1, &s_.fences[flight]);
    return result == VK_SUCCESS ? Status::kOk : Lost(FailedCall("ResetFences(", result, diag_));
  }

  Status WaitForAll() {
    Status first = Status::kOk;
    for (uint32_t i = 0; i < kFlights; ++i) {
      if (!is_flying_[i]) continue;
      const Status status = s_.is_lost ? Status::kDeviceLost : Wait(i);
      if (first == Status::kOk) first = status;
    }
    return first;
  }

  Status Lost(Status status) {
    s_.is_lost = true;
    return status;
  }

  State& s_;
  const RunArgs& args_;
  const uint32_t logit_rows_, rows_;
  Diag* diag_;
  uint32_t mode_ = 0, next_ = 0;
  bool is_flying_[kFlights] = {};
};

}  // namespace

Status ExecuteEdits(State* state, uint32_t group, uint32_t n_edits, Diag* diag) {
  const RunArgs nothing;
  return Execution(state, nothing, 0, diag).RunEdits(group, n_edits);
}

Status Execute(State* state, const RunArgs& args, uint32_t n_logit_rows, Diag* diag) {
  return Execution(state, args, n_logit_rows, diag).Run();
}

}  // namespace arn::vulkan
