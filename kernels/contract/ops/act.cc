#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ActContract : OpDefaults<ActParams> {
  static Status Check(const ActParams& p, const StepCheck& check) {
    return check.IsKnown(p.activation, /*has_gate=*/false, 0.0f);
  }

  static void Dump(const ActParams& p, const Step&, StepText* text) {
    text->Print(" %s", ActivationName(p.activation));
  }
};

}  // namespace

constinit const OpContract kActOp =
    MakeOp<ActContract>("act", kHasIn | kInEncoder | kInDecoder | kTakesFactors);

}  // namespace arn
