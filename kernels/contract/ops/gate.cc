#include "kernels/contract/ops.h"
#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct GateContract : OpDefaults<GateParams> {
  static void Operands(const GateParams& p, StepOperands* out) {
    out->AddValue(p.gate);
    out->AddWeight(p.norm);
  }

  static Status Check(const GateParams& p, const StepCheck& check) {
    const uint32_t width = check.Width(check.step().in);
    if (p.head_dim != 0 && width % p.head_dim != 0) {
      return check.ValueError("width", width, p.head_dim);
    }
    if (p.activation != Activation::kSilu && p.activation != Activation::kSigmoid) {
      return check.UnsupportedError("activation", "is neither silu nor sigmoid");
    }
    ARN_TRY(check.Exists("gate", p.gate));
    if (p.gate == check.step().in) return check.ValueError("gate", p.gate, kNoValue);
    const uint32_t gates = p.head_dim == 0 ? width : width / p.head_dim;
    if (check.Width(p.gate) < gates) {
      return check.ValueError("gate's width", check.Width(p.gate), gates);
    }
    if (p.head_dim != 0) ARN_TRY(check.Equals("norm of gated heads", p.norm, kNoWeight));
    if (p.norm == kNoWeight) return check.Equals("group of the norm", p.norm_group, 0);
    if (p.norm_group == 0 || width % p.norm_group != 0) {
      return check.ValueError("group of the norm", p.norm_group, width);
    }
    const bool repeats = p.norm < check.program().weights.size() &&
                         check.program().weights[p.norm].cols == p.norm_group;
    return check.Vector("norm", p.norm, repeats ? p.norm_group : width);
  }

  static void Dump(const GateParams& p, const Step&, StepText* text) {
    text->PrintWeight("norm", p.norm);
    text->Print(" gate %%%u %s", p.gate,
                p.head_dim == 0 ? ActivationName(p.activation) : "softplus");
    if (p.head_dim != 0) text->Print(" of heads of %u", p.head_dim);
    if (p.norm == kNoWeight) return;
    text->Print(" %s groups of %u", p.norms_first ? "after" : "before", p.norm_group);
  }
};

}  // namespace

GateArgs GateOf(const Program& program, const GateParams& params) {
  GateArgs args = {};
  args.head_dim = params.head_dim;
  args.norm_group = params.norm_group;
  args.norm_repeats =
      params.norm != kNoWeight && program.weights[params.norm].cols == params.norm_group;
  args.epsilon = params.epsilon;
  args.activation = params.activation;
  args.norms_first = params.norms_first;
  return args;
}

constinit const OpContract kGateOp = MakeOp<GateContract>("gate", kHasIn | kInDecoder);

}  // namespace arn
