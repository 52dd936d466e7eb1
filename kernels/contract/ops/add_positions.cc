#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct AddPositionsContract : OpDefaults<AddPositionsParams> {
  static Status Check(const AddPositionsParams& p, const StepCheck& check) {
    return check.Positions(p.positions, check.program().max_encoder_rows,
                           check.Width(check.step().in));
  }

  // Only the rows added are read.
  static void Work(const AddPositionsParams&, const StepInRun& run, StepWork* work) {
    work->weight_bytes += run.rows * run.width(run.step.in) * sizeof(float);
  }

  static void Dump(const AddPositionsParams& p, const Step&, StepText* text) {
    text->PrintWeight("positions", p.positions);
  }
};

}  // namespace

constinit const OpContract kAddPositionsOp =
    MakeOp<AddPositionsContract>("add_positions", kHasIn | kInEncoder);

}  // namespace arn
