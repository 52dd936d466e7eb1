#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct GatedActContract : OpDefaults<GatedActParams> {
  static Status Check(const GatedActParams& p, const StepCheck& check) {
    ARN_TRY(check.IsKnown(p.activation, /*has_gate=*/true, p.activation_limit));
    return check.HasWidth("input width", check.step().in,
                          2 * uint64_t{check.Width(check.step().out)});
  }

  static void Dump(const GatedActParams& p, const Step&, StepText* text) {
    text->Print(" %s", ActivationName(p.activation));
  }
};

}  // namespace

constinit const OpContract kGatedActOp =
    MakeOp<GatedActContract>("gated_act", kHasIn | kHasOut | kInEncoder | kInDecoder);

}  // namespace arn
