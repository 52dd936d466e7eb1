#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct NormRowsContract : OpDefaults<NormRowsParams> {
  static void Operands(const NormRowsParams& p, StepOperands* out) {
    out->AddWeight(p.weight);
    out->AddWeight(p.bias);
  }

  static Status Check(const NormRowsParams& p, const StepCheck& check) {
    const Step& first = check.program().steps[0];
    const auto* features = first.If<FeaturesParams>();
    if (features == nullptr || features->stride != 0) {
      return check.UnsupportedError("input", "is not whole rows of features");
    }
    const Value& in = check.program().values[check.step().in];
    if (p.stride == 0) return check.ValueError("stride", p.stride, 1);
    if (in.more_rows < features->optional_rows / p.stride) {
      return check.ValueError("further rows", in.more_rows, features->optional_rows / p.stride);
    }
    return check.Norm(NormKind::kLayer, p.weight, p.bias, in.width);
  }

  static void Dump(const NormRowsParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
    text->PrintWeight("bias", p.bias);
    if (p.stride != 1) text->Print(" stride %u", p.stride);
  }
};

}  // namespace

constinit const OpContract kNormRowsOp =
    MakeOp<NormRowsContract>("norm_rows", kHasIn | kInEncoder | kTakesFactors);

}  // namespace arn
