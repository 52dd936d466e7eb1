#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct HeadLinearContract : OpDefaults<HeadLinearParams> {
  static void Operands(const HeadLinearParams& p, StepOperands* out) {
    for (const ValueId id : {p.gathered, p.projected, p.tails[0], p.tails[1]}) out->AddValue(id);
    out->first_matrix = p.weight;
    out->n_matrices = p.n_heads;
  }

  static Status Check(const HeadLinearParams& p, const StepCheck& check) {
    ARN_TRY(check.NotInPlace());
    ARN_TRY(check.Exists("gathered", p.gathered));
    ARN_TRY(check.Exists("projected", p.projected));
    const uint64_t heads = p.n_heads;
    const uint32_t gathered = check.Width(p.gathered), projected = check.Width(p.projected);
    if (heads == 0) return check.ValueError("heads", 0, 1);
    if (p.n_copied > p.first) return check.ValueError("copied columns", p.n_copied, p.first);
    ARN_TRY(check.HasWidth("input width", check.step().in, heads * (p.first + gathered)));
    uint64_t width = heads * (p.n_copied + projected);
    for (const ValueId tail : p.tails) {
      if (tail == kNoValue) continue;
      ARN_TRY(check.Exists("tail", tail));
      width += check.Width(tail);
    }
    ARN_TRY(check.HasWidth("output width", check.step().out, width));
    for (uint32_t h = 0; h < p.n_heads; ++h) {
      ARN_TRY(check.Matrix(p.weight + h, projected, gathered));
    }
    return Status::kOk;
  }

  static void Work(const HeadLinearParams& p, const StepInRun& run, StepWork* work) {
    for (uint32_t h = 0; h < p.n_heads; ++h) {
      work->weight_bytes += run.weight(p.weight + h).bytes;
      AddMatmul(run.weight(p.weight + h), run.rows, work);
    }
  }

  static void Dump(const HeadLinearParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
    text->Print(" %u heads from %u copy %u", p.n_heads, p.first, p.n_copied);
    for (const ValueId tail : p.tails) {
      if (tail != kNoValue) text->Print(" tail %%%u", tail);
    }
  }
};

}  // namespace

constinit const OpContract kHeadLinearOp =
    MakeOp<HeadLinearContract>("head_linear", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
