#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct MatchRmsContract : OpDefaults<MatchRmsParams> {
  static void Operands(const MatchRmsParams& p, StepOperands* out) { out->AddValue(p.like); }

  static Status Check(const MatchRmsParams& p, const StepCheck& check) {
    const uint32_t width = check.Width(check.step().in);
    if (!(p.epsilon > 0.0f)) return check.UnsupportedError("epsilon", "is not above 0");
    if (p.like == check.step().out) return check.ValueError("like", p.like, kNoValue);
    ARN_TRY(check.HasWidth("width to match", p.like, width));
    return check.HasWidth("output width", check.step().out, width);
  }

  static void Dump(const MatchRmsParams& p, const Step&, StepText* text) {
    text->Print(" like %%%u", p.like);
  }
};

}  // namespace

constinit const OpContract kMatchRmsOp =
    MakeOp<MatchRmsContract>("match_rms", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
