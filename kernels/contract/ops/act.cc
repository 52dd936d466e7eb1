#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ActContract : OpDefaults<ActParams> {
  static void Operands(const ActParams& p, StepOperands* out) { out->AddWeight(p.parameters); }

  static Status Check(const ActParams& p, const StepCheck& check) {
    if (p.activation == Activation::kXielu) {
      return check.Vector("activation parameters", p.parameters, kXieluParameters);
    }
    return check.IsKnown(p.activation, /*has_gate=*/false, 0.0f);
  }

  static void Dump(const ActParams& p, const Step&, StepText* text) {
    text->Print(" %s", ActivationName(p.activation));
    text->PrintWeight("parameters", p.parameters);
  }
};

}  // namespace

constinit const OpContract kActOp =
    MakeOp<ActContract>("act", kHasIn | kInEncoder | kInDecoder | kTakesFactors | kTakesPooled);

}  // namespace arn
