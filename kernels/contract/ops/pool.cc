#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct PoolContract : OpDefaults<PoolParams> {
  static void Operands(const PoolParams& p, StepOperands* out) {
    out->AddWeight(p.shift);
    out->AddWeight(p.scale);
  }

  static Status Check(const PoolParams& p, const StepCheck& check) {
    const Span<Value> values = check.program().values;
    const Step& step = check.step();
    if (static_cast<uint32_t>(p.mode) >= kPoolKindCount) {
      return check.ValueError("pool kind", static_cast<uint32_t>(p.mode), kPoolKindCount - 1);
    }
    if (values[step.in].is_pooled || !values[step.out].is_pooled) {
      return check.UnsupportedError("pool", "makes pooled rows of rows");
    }
    for (const WeightId weight : {p.shift, p.scale}) {
      if (weight != kNoWeight) ARN_TRY(check.Vector("pool weight", weight, check.Width(step.out)));
    }
    const uint64_t width = check.Width(step.in);
    if (p.mode != PoolKind::kConcat) return check.HasWidth("output width", step.out, width);
    const uint32_t n = check.program().pool_rows;
    if (n == 0) return check.UnsupportedError("pool", "concatenates a fixed number of rows");
    return check.HasWidth("output width", step.out, n * width);
  }

  static void Dump(const PoolParams& p, const Step&, StepText* text) {
    constexpr const char* kNames[] = {"first",     "last",          "mean",  "max",
                                      "mean_sqrt", "weighted_mean", "concat"};
    static_assert(sizeof kNames / sizeof kNames[0] == kPoolKindCount);
    text->Print(" %s", kNames[static_cast<uint32_t>(p.mode)]);
    text->PrintFloat("factor", p.factor, 1.0f);
    text->PrintWeight("shift", p.shift);
    text->PrintWeight("scale", p.scale);
  }
};

}  // namespace

constinit const OpContract kPoolOp =
    MakeOp<PoolContract>("pool", kHasIn | kHasOut | kInEncoder | kTakesPooled);

}  // namespace arn
