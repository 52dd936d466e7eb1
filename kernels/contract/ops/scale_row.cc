#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ScaleRowContract : OpDefaults<ScaleRowParams> {
  static void Operands(const ScaleRowParams& p, StepOperands* out) { out->AddValue(p.scale); }

  static Status Check(const ScaleRowParams& p, const StepCheck& check) {
    if (p.scale == check.step().in) return check.ValueError("scale", p.scale, kNoValue);
    return check.HasWidth("scale width", p.scale, 1);
  }

  static void Dump(const ScaleRowParams& p, const Step&, StepText* text) {
    text->Print(" by %%%u", p.scale);
  }
};

}  // namespace

constinit const OpContract kScaleRowOp = MakeOp<ScaleRowContract>("scale_row", kHasIn | kInDecoder);

}  // namespace arn
