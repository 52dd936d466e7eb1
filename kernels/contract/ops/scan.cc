#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ScanContract : OpDefaults<ScanParams> {
  static void Operands(const ScanParams& p, StepOperands* out) {
    out->AddValue(p.time_steps);
    out->AddValue(p.mix);
    out->AddWeight(p.rates);
    out->AddWeight(p.skip);
  }

  static Status Check(const ScanParams& p, const StepCheck& check) {
    const Weight* rates = nullptr;
    ARN_TRY(check.FloatRows("states", p.rates, kMaxScanStates, &rates));
    const uint32_t width = rates->cols, out_width = check.Width(check.step().out);
    ARN_TRY(check.Vector("skip", p.skip, width));
    ARN_TRY(check.HasWidth("input width", check.step().in, width));
    ARN_TRY(check.HasWidth("time steps' width", p.time_steps, width));
    ARN_TRY(check.HasWidth("mix's width", p.mix, 2 * rates->rows));
    if (out_width < width) return check.ValueError("output width", out_width, width);
    return check.State(p.group, p.group_layer, p.state_offset, uint64_t{rates->rows} * width);
  }

  // h = decay * h + x * B; y += h * C.
  static void Work(const ScanParams& p, const StepInRun& run, StepWork* work) {
    const uint64_t states = uint64_t{run.weight(p.rates).rows} * run.weight(p.rates).cols;
    work->kv_bytes += SequencesUnderWay(run.args) * states * sizeof(float);
    work->float_ops += 2 * 3 * run.rows * states;
  }

  static void Dump(const ScanParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.rates);
    text->PrintWeight("skip", p.skip);
    text->Print(" steps %%%u mix %%%u group %u layer %u", p.time_steps, p.mix, p.group,
                p.group_layer);
  }
};

}  // namespace

constinit const OpContract kScanOp = MakeOp<ScanContract>("scan", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
