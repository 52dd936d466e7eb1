#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct Im2colContract : OpDefaults<Im2colParams> {
  static Status Check(const Im2colParams& p, const StepCheck& check) {
    ARN_TRY(check.NotInPlace());
    if (p.n_taps % 2 == 0) return check.ValueError("taps", p.n_taps, p.n_taps + 1u);
    const Value& in = check.program().values[check.step().in];
    const Value& out = check.program().values[check.step().out];
    if (out.row_factor == 0 || in.row_factor % out.row_factor != 0) {
      return check.ValueError("rows' factor", in.row_factor, out.row_factor);
    }
    return check.Equals("output width", out.width, uint64_t{p.n_taps} * in.width);
  }

  static void Dump(const Im2colParams& p, const Step&, StepText* text) {
    text->Print(" %u taps", p.n_taps);
  }
};

}  // namespace

constinit const OpContract kIm2colOp = MakeOp<Im2colContract>(
    "im2col", kHasIn | kHasOut | kInEncoder | kTakesFactors | kChangesFactor);

}  // namespace arn
