#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ConvContract : OpDefaults<ConvParams> {
  static void Operands(const ConvParams& p, StepOperands* out) {
    out->AddWeight(p.weight);
    out->AddWeight(p.bias);
  }

  static Status Check(const ConvParams& p, const StepCheck& check) {
    const Weight* weight = nullptr;
    ARN_TRY(check.FloatRows("taps", p.weight, kMaxConvTaps, &weight));
    const uint32_t width = weight->cols, in_width = check.Width(check.step().in);
    if (p.bias != kNoWeight) ARN_TRY(check.Vector("bias", p.bias, width));
    ARN_TRY(check.NotInPlace());
    ARN_TRY(check.HasWidth("output width", check.step().out, width));
    if (p.is_gated) ARN_TRY(check.Equals("input width", in_width, 3 * uint64_t{width}));
    if (in_width < width) return check.ValueError("input width", in_width, width);
    return check.State(p.group, p.group_layer, p.state_offset, uint64_t{weight->rows - 1} * width);
  }

  static void Work(const ConvParams& p, const StepInRun& run, StepWork* work) {
    const uint64_t channels = run.weight(p.weight).cols, taps = run.weight(p.weight).rows;
    work->kv_bytes += SequencesUnderWay(run.args) * (taps - 1) * channels * sizeof(float);
    work->float_ops += 2 * run.rows * taps * channels;
  }

  static void Dump(const ConvParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
    text->PrintWeight("bias", p.bias);
    text->Print(" group %u layer %u%s", p.group, p.group_layer, p.is_gated ? " gated" : "");
  }
};

}  // namespace

constinit const OpContract kConvOp = MakeOp<ConvContract>("conv", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
