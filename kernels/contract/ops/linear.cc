#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct LinearContract : OpDefaults<LinearParams> {
  static void Operands(const LinearParams& p, StepOperands* out) {
    out->first_matrix = p.weight;
    out->n_matrices = 1;
    out->accumulates = p.accumulate;
  }

  static Status Check(const LinearParams& p, const StepCheck& check) {
    ARN_TRY(check.NotInPlace());
    return check.Matrix(p.weight, check.Width(check.step().out), check.Width(check.step().in));
  }

  static void Work(const LinearParams& p, const StepInRun& run, StepWork* work) {
    work->weight_bytes += run.weight(p.weight).bytes;
    AddMatmul(run.weight(p.weight), run.rows, work);
  }

  static void Dump(const LinearParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
  }
};

}  // namespace

constinit const OpContract kLinearOp = MakeOp<LinearContract>(
    "linear", kHasIn | kHasOut | kInEncoder | kInDecoder | kTakesFactors | kTakesPooled);

}  // namespace arn
