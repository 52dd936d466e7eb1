#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct Im2colContract : OpDefaults<Im2colParams> {
  static Status Check(const Im2colParams& p, const StepCheck& check) {
    ARN_TRY(check.NotInPlace());
    if (p.n_taps == 0 || p.stride == 0) return check.ValueError("taps", p.n_taps, 1);
    if (2u * p.padding >= p.n_taps) return check.ValueError("padding", p.padding, p.n_taps / 2);
    const Value& in = check.program().values[check.step().in];
    const Value& out = check.program().values[check.step().out];
    // So the last row of `out` ends with, or less than a stride before, the last of `in`.
    const uint32_t more = uint32_t{out.more_rows} * p.stride + p.n_taps - 1 - 2u * p.padding;
    ARN_TRY(check.Equals("rows' factor", in.row_factor, uint64_t{out.row_factor} * p.stride));
    ARN_TRY(check.Equals("further rows", in.more_rows, more));
    return check.Equals("output width", out.width, uint64_t{p.n_taps} * in.width);
  }

  static void Dump(const Im2colParams& p, const Step&, StepText* text) {
    text->Print(" %u taps", p.n_taps);
    if (p.stride != 1) text->Print(", stride %u", p.stride);
    if (p.padding != 0) text->Print(", padding %u", p.padding);
  }
};

}  // namespace

constinit const OpContract kIm2colOp = MakeOp<Im2colContract>(
    "im2col", kHasIn | kHasOut | kInEncoder | kTakesFactors | kChangesFactor);

}  // namespace arn
