#include "kernels/contract/adapter.h"

#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct AdaptContract : OpDefaults<AdaptParams> {
  static void Operands(const AdaptParams&, StepOperands* out) { out->accumulates = true; }

  static Status Check(const AdaptParams& p, const StepCheck& check) {
    ARN_TRY(check.NotInPlace());
    if (check.program().max_rank == 0) return check.ValueError("largest rank", 0, 1);
    return check.Matrix(p.weight, check.Width(check.step().out), check.Width(check.step().in));
  }

  // Sequences with the same adapters one after the other read them once.
  static void Work(const AdaptParams& p, const StepInRun& run, StepWork* work) {
    Span<const ActiveAdapter> before;
    for (const SequenceRows& s : run.args.sequences) {
      const bool is_read = !SameAdapters(before, s.adapters);
      before = s.adapters;
      for (const ActiveAdapter& active : s.adapters) {
        const LowRank* change = active.adapter->Of(p.weight);
        if (change == nullptr) continue;
        if (is_read) work->weight_bytes += change->bytes;
        uint64_t values = uint64_t{change->rank} * change->cols;
        for (const LowRankBlock& b : change->blocks) values += uint64_t{b.n_rows} * b.rank;
        work->float_ops += 2 * s.n_rows * values;
      }
    }
  }

  static void Dump(const AdaptParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
  }
};

}  // namespace

constinit const OpContract kAdaptOp = MakeOp<AdaptContract>("adapt", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
