#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct ThresholdContract : OpDefaults<ThresholdParams> {
  static Status Check(const ThresholdParams& p, const StepCheck& check) {
    const uint32_t width = check.Width(check.step().in);
    return p.n_columns != 0 && p.n_columns <= width
               ? Status::kOk
               : check.ValueError("columns", p.n_columns, width);
  }

  static void Dump(const ThresholdParams& p, const Step&, StepText* text) {
    text->Print(" first %u columns, mean %+g deviations", p.n_columns,
                static_cast<double>(p.deviations));
  }
};

}  // namespace

constinit const OpContract kThresholdOp =
    MakeOp<ThresholdContract>("threshold", kHasIn | kInDecoder);

}  // namespace arn
