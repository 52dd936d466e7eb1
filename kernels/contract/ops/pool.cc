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
  }
};

}  // namespace

constinit const OpContract kPoolOp =
    MakeOp<PoolContract>("pool", kHasIn | kHasOut | kInEncoder | kTakesPooled);

}  // namespace arn
