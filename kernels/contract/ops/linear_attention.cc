#include "kernels/contract/ops.h"
#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct LinearAttentionContract : OpDefaults<LinearAttentionParams> {
  static void Operands(const LinearAttentionParams& p, StepOperands* out) {
    out->AddValue(p.gates);
    out->AddWeight(p.heads);
  }

  static Status Check(const LinearAttentionParams& p, const StepCheck& check) {
    const Weight* heads = nullptr;
    ARN_TRY(check.FloatRows("heads", p.heads, 3, &heads));
    if (heads->rows < 2) return check.ValueError("rows of the heads", heads->rows, 2);
    ARN_TRY(check.NotInPlace());
    const uint32_t n_heads = heads->cols, width = check.Width(check.step().out);
    const uint32_t in_width = check.Width(check.step().in);
    if (n_heads == 0 || width % n_heads != 0 || width == 0) {
      return check.ValueError("output width", width, n_heads);
    }
    const uint32_t keys = in_width > width ? (in_width - width) / 2 : 0;
    if (p.key_dim == 0 || p.key_dim > kMaxHeadDim || keys == 0 || keys % p.key_dim != 0 ||
        n_heads % (keys / p.key_dim) != 0) {
      return check.ValueError("width of the keys", keys, p.key_dim);
    }
    ARN_TRY(check.Equals("input width", in_width, width + 2 * uint64_t{keys}));
    if (width / n_heads > kMaxHeadDim) {
      return check.ValueError("head width", width / n_heads, kMaxHeadDim);
    }
    ARN_TRY(check.Exists("gates", p.gates));
    const uint64_t n_gates = (p.has_delta_rule ? 2 : 1) * uint64_t{n_heads};
    if (check.Width(p.gates) < width + n_gates) {
      return check.ValueError("gates' width", check.Width(p.gates), width + n_gates);
    }
    return check.State(p.group, p.group_layer, p.state_offset, uint64_t{p.key_dim} * width);
  }

  // S = g S + k u; y += q S; the delta rule also multiplies S by k.
  static void Work(const LinearAttentionParams& p, const StepInRun& run, StepWork* work) {
    const uint64_t states = uint64_t{p.key_dim} * run.width(run.step.out);
    work->kv_bytes += SequencesUnderWay(run.args) * states * sizeof(float);
    work->float_ops += (p.has_delta_rule ? 7 : 5) * run.rows * states;
  }

  static void Dump(const LinearAttentionParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.heads);
    text->Print(" gates %%%u keys %u group %u layer %u%s%s", p.gates, p.key_dim, p.group,
                p.group_layer, p.has_delta_rule ? " delta" : "", p.doubles_betas ? " twice" : "");
  }
};

}  // namespace

LinearAttentionArgs LinearAttentionOf(const Program& program, const Step& step) {
  const auto& p = step.Get<LinearAttentionParams>();
  const Weight& heads = program.weights[p.heads];
  const uint32_t width = program.values[step.out].width;
  LinearAttentionArgs args = {};
  args.in_stride = program.values[step.in].width;
  args.gates_stride = program.values[p.gates].width;
  args.has_skip = heads.rows == 3;
  args.has_delta_rule = p.has_delta_rule;
  args.beta_factor = p.doubles_betas ? 2.0f : 1.0f;
  args.time_step_low = p.time_step_low;
  args.time_step_high = p.time_step_high;
  args.n_heads = heads.cols;
  args.key_dim = p.key_dim;
  args.value_dim = width / heads.cols;
  const auto n_keys = static_cast<uint32_t>(args.in_stride - width) / 2 / p.key_dim;
  args.heads_per_key = heads.cols / n_keys;
  return args;
}

constinit const OpContract kLinearAttentionOp =
    MakeOp<LinearAttentionContract>("linear_attention", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
