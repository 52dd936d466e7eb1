#include "kernels/contract/adapter.h"
#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct SteerContract : OpDefaults<SteerParams> {
  static Status Check(const SteerParams& p, const StepCheck& check) {
    return check.Equals("layer", p.layer, check.step().layer);
  }

  static void Work(const SteerParams& p, const StepInRun& run, StepWork* work) {
    const uint64_t width = run.program.values[run.step.in].width;
    for (const SequenceRows& s : run.args.sequences) {
      for (const ActiveAdapter& active : s.adapters) {
        if (active.adapter->DirectionOf(p.layer) == nullptr) continue;
        work->float_ops += 2 * s.n_rows * width;
      }
    }
  }
};

}  // namespace

constinit const OpContract kSteerOp = MakeOp<SteerContract>("steer", kHasIn | kInDecoder);

}  // namespace arn
