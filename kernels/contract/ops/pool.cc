#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct PoolContract : OpDefaults<PoolParams> {
  static Status Check(const PoolParams& p, const StepCheck& check) {
    const Span<Value> values = check.program().values;
    const Step& step = check.step();
    if (static_cast<uint32_t>(p.mode) >= kPoolKindCount) {
      return check.ValueError("pool kind", static_cast<uint32_t>(p.mode), kPoolKindCount - 1);
    }
    if (values[step.in].is_pooled || !values[step.out].is_pooled) {
      return check.UnsupportedError("pool", "makes pooled rows of rows");
    }
    return check.HasWidth("output width", step.out, check.Width(step.in));
  }

  static void Dump(const PoolParams& p, const Step&, StepText* text) {
    constexpr const char* kNames[] = {"first", "last", "mean", "max", "mean_sqrt", "weighted_mean"};
    static_assert(sizeof kNames / sizeof kNames[0] == kPoolKindCount);
    text->Print(" %s", kNames[static_cast<uint32_t>(p.mode)]);
  }
};

}  // namespace

constinit const OpContract kPoolOp =
    MakeOp<PoolContract>("pool", kHasIn | kHasOut | kInEncoder | kTakesPooled);

}  // namespace arn
