#include "kernels/contract/check_state.h"

#include "kernels/contract/step_check.h"

namespace arn {
namespace {

class Checker : StepCheck {
 public:
  Checker(const Program& program, const Step& step, uint32_t index, Diag* diag)
      : StepCheck(program, step, index, diag) {}

  Status Conv() {
    const Weight* weight = nullptr;
    ARN_TRY(Rows("taps", kMaxConvTaps, &weight));
    const uint32_t width = weight->cols;
    if (step_.bias != kNoWeight) ARN_TRY(Vector("bias", step_.bias, width));
    if (step_.in == step_.out) return ValueError("output", step_.out, kNoValue);
    ARN_TRY(Equals("output width", Width(step_.out), width));
    const uint32_t least = step_.is_gated ? 3 * width : width;
    if (step_.is_gated) ARN_TRY(Equals("input width", Width(step_.in), least));
    if (Width(step_.in) < least) return ValueError("input width", Width(step_.in), least);
    return State(uint64_t{weight->rows - 1} * width);
  }

  Status Scan() {
    const Weight* rates = nullptr;
    ARN_TRY(Rows("states", kMaxScanStates, &rates));
    const uint32_t width = rates->cols;
    ARN_TRY(Vector("skip", step_.skip, width));
    ARN_TRY(Equals("input width", Width(step_.in), width));
    ARN_TRY(Equals("time steps' width", Width(step_.time_steps), width));
    ARN_TRY(Equals("mix's width", Width(step_.mix), 2 * rates->rows));
    if (Width(step_.out) < width) return ValueError("output width", Width(step_.out), width);
    return State(uint64_t{rates->rows} * width);
  }

 private:
  // Checks the step's weight: f32 rows, at most `most` of them, with at most 2^20 columns.
  Status Rows(const char* what, uint32_t most, const Weight** out) {
    if (step_.weight >= program_.weights.size()) return ValueError("weight", step_.weight, 0);
    const Weight& weight = program_.weights[step_.weight];
    if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows) {
      return UnsupportedError(what, "are not f32 rows");
    }
    if (weight.rows == 0 || weight.rows > most) return ValueError(what, weight.rows, most);
    if (weight.cols == 0 || weight.cols > (1u << 20)) {
      return ValueError("channels", weight.cols, 1u << 20);
    }
    *out = &weight;
    return Status::kOk;
  }

  Status Vector(const char* what, WeightId id, uint32_t size) {
    if (id >= program_.weights.size()) return ValueError(what, id, 0);
    const Weight& weight = program_.weights[id];
    if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows ||
        weight.rows != 1) {
      return UnsupportedError(what, "is not an f32 vector");
    }
    return Equals(what, weight.cols, size);
  }

  Status State(uint64_t floats) {
    if (step_.group >= program_.kv_groups.size()) return ValueError("group", step_.group, 0);
    const KvGroup& group = program_.kv_groups[step_.group];
    if (step_.group_layer >= group.n_layers) {
      return ValueError("group_layer", step_.group_layer, group.n_layers);
    }
    const uint64_t end = step_.state_offset + floats;
    return end <= group.state_floats ? Status::kOk
                                     : ValueError("state's end", end, group.state_floats);
  }
};

}  // namespace

Status CheckStateStep(const Program& program, const Step& step, uint32_t index, Diag* diag) {
  Checker checker(program, step, index, diag);
  return step.op == Op::kConv ? checker.Conv() : checker.Scan();
}

Status CheckStateTable(const Program& program, uint32_t group, const SequenceRows& rows,
                       Diag* diag) {
  const PageTable& table = rows.tables[group];
  const uint32_t n_slots = program.kv_groups[group].active.n_pages;
  const uint32_t n = rows.first_position == 0 ? 1 : 2;
  if (table.pages == nullptr || table.first_page != 0 || table.n_pages < n) {
    return diag->Fail(Status::kInternal, "state group %u: %u slots from %u on, a run needs %u",
                      group, table.n_pages, table.first_page, n);
  }
  const uint32_t from = table.pages[0], to = table.pages[table.n_pages - 1];
  if (to >= n_slots || from >= n_slots || (n == 2 && from == to)) {
    return diag->Fail(Status::kInternal, "state group %u: slots %u and %u of %u", group, from, to,
                      n_slots);
  }
  return Status::kOk;
}

}  // namespace arn
