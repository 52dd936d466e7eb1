#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct NormContract : OpDefaults<NormParams> {
  static void Operands(const NormParams& p, StepOperands* out) {
    out->AddWeight(p.weight);
    out->AddWeight(p.bias);
    out->accumulates = p.accumulate;
  }

  static Status Check(const NormParams& p, const StepCheck& check) {
    const uint32_t width = check.Width(check.step().in);
    const Span<const Weight> weights = check.program().weights;
    uint32_t group = width;
    if (p.group != 0 && (p.kind != NormKind::kRms || width % p.group != 0)) {
      return check.ValueError("norm group", p.group, width);
    }
    if (p.group == 0 && p.kind == NormKind::kRms && p.weight < weights.size()) {
      const uint32_t cols = weights[p.weight].cols;
      if (cols != 0 && width % cols == 0) group = cols;
    }
    ARN_TRY(check.Norm(p.kind, p.weight, p.bias, group));
    return check.HasWidth("output width", check.step().out, width);
  }

  static void Dump(const NormParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
    text->PrintWeight("bias", p.bias);
    text->Print(" %s", p.kind == NormKind::kRms ? "rms" : "layer");
    if (p.group != 0) text->Print(" of %u", p.group);
  }
};

}  // namespace

constinit const OpContract kNormOp =
    MakeOp<NormContract>("norm", kHasIn | kHasOut | kInEncoder | kInDecoder | kTakesPooled);

}  // namespace arn
