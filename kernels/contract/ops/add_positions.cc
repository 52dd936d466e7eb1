#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct AddPositionsContract : OpDefaults<AddPositionsParams> {
  static Status Check(const AddPositionsParams& p, const StepCheck& check) {
    const uint32_t width = check.Width(check.step().in);
    if (p.token_types != kNoWeight) ARN_TRY(check.Positions(p.token_types, kTokenTypes, width));
    if (p.positions == kNoWeight) return Status::kOk;
    const Program& program = check.program();
    // Packed sequences start at position 0 each.
    const bool is_packed = program.max_pooled_rows != 0;
    return check.Positions(p.positions, is_packed ? program.max_context : program.max_encoder_rows,
                           width);
  }

  // Only the rows added are read.
  static void Work(const AddPositionsParams& p, const StepInRun& run, StepWork* work) {
    if (p.positions == kNoWeight) return;
    work->weight_bytes += run.rows * run.width(run.step.in) * sizeof(float);
  }

  static void Dump(const AddPositionsParams& p, const Step&, StepText* text) {
    text->PrintWeight("positions", p.positions);
    text->PrintWeight("token_types", p.token_types);
  }
};

}  // namespace

constinit const OpContract kAddPositionsOp =
    MakeOp<AddPositionsContract>("add_positions", kHasIn | kInEncoder);

}  // namespace arn
