#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct FeaturesContract : OpDefaults<FeaturesParams> {
  static Status Check(const FeaturesParams& p, const StepCheck& check) {
    const uint64_t end = uint64_t{p.first} + check.Width(check.step().out);
    if (p.optional_rows != 0) {
      const Value& out = check.program().values[check.step().out];
      ARN_TRY(check.Equals("columns of a row of features", p.stride, 0));
      if (p.optional_rows > out.more_rows) {
        return check.ValueError("optional rows", p.optional_rows, out.more_rows);
      }
    }
    if (p.stride == 0) return check.Equals("first column", p.first, 0);
    if (!check.is_encoder()) return check.UnsupportedError("columns", "of a decoder's features");
    return end <= p.stride ? Status::kOk : check.ValueError("columns' end", end, p.stride);
  }

  static void Dump(const FeaturesParams& p, const Step&, StepText* text) {
    if (p.stride != 0) text->Print(" from column %u of %u", p.first, p.stride);
    if (p.optional_rows != 0) text->Print(" %u optional rows", p.optional_rows);
  }
};

}  // namespace

constinit const OpContract kFeaturesOp =
    MakeOp<FeaturesContract>("features", kHasOut | kInEncoder | kInDecoder | kTakesFactors);

}  // namespace arn
