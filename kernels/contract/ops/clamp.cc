#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ClampContract : OpDefaults<ClampParams> {
  static void Operands(const ClampParams& p, StepOperands* out) { out->AddWeight(p.ranges); }

  static Status Check(const ClampParams& p, const StepCheck& check) {
    const Span<const Weight> weights = check.program().weights;
    if (p.ranges >= weights.size()) {
      return check.ValueError("weight", p.ranges, weights.size());
    }
    ARN_TRY(check.Vector("ranges", p.ranges, weights[p.ranges].cols));
    if (p.range >= weights[p.ranges].cols / 2) {
      return check.ValueError("range", p.range, weights[p.ranges].cols / 2);
    }
    const uint32_t width = check.Width(check.step().in);
    if (p.n_columns != 0 && p.first <= width && p.n_columns <= width - p.first) return Status::kOk;
    return check.ValueError("columns", p.n_columns, width);
  }

  static void Dump(const ClampParams& p, const Step&, StepText* text) {
    text->Print(" %u columns from %u, range %u", p.n_columns, p.first, p.range);
    text->PrintWeight("ranges", p.ranges);
  }
};

}  // namespace

constinit const OpContract kClampOp = MakeOp<ClampContract>("clamp", kHasIn | kInEncoder);

}  // namespace arn
