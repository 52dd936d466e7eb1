#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct MultiplyContract : OpDefaults<MultiplyParams> {
  static void Operands(const MultiplyParams& p, StepOperands* out) {
    out->AddValue(p.by);
    out->AddWeight(p.scale);
  }

  static Status Check(const MultiplyParams& p, const StepCheck& check) {
    if (p.scale != kNoWeight) ARN_TRY(check.Vector("scale", p.scale, 1));
    if (p.by == kNoValue) return Status::kOk;
    ARN_TRY(check.Exists("factors", p.by));
    if (p.by == check.step().in) return check.ValueError("factors", p.by, kNoValue);
    const uint64_t end = uint64_t{p.first} + check.Width(check.step().in);
    const uint32_t width = check.Width(p.by);
    return end <= width ? Status::kOk : check.ValueError("columns of the factors", width, end);
  }

  static void Dump(const MultiplyParams& p, const Step&, StepText* text) {
    if (p.by != kNoValue) text->Print(" by %%%u from %u", p.by, p.first);
    text->PrintWeight("scale", p.scale);
    if (p.factor != 1.0f) text->Print(" factor %g", static_cast<double>(p.factor));
  }
};

}  // namespace

constinit const OpContract kMultiplyOp = MakeOp<MultiplyContract>("multiply", kHasIn | kInDecoder);

}  // namespace arn
