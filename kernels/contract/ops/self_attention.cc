#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct SelfAttentionContract : OpDefaults<SelfAttentionParams> {
  static void Operands(const SelfAttentionParams& p, StepOperands* out) {
    out->AddWeight(p.relative_position_bias);
  }

  static Status Check(const SelfAttentionParams& p, const StepCheck& check) {
    const AttentionKind* kind = nullptr;
    ARN_TRY(check.Kind(p.kind, &kind));
    ARN_TRY(check.HasWidth("input width", check.step().in,
                           uint64_t{kind->n_heads + 2 * kind->n_kv_heads} * kind->head_dim));
    ARN_TRY(
        check.HasWidth("output width", check.step().out, uint64_t{kind->n_heads} * kind->head_dim));
    return check.RelativePositionBias(p.relative_position_bias, *kind, true);
  }

  static void Work(const SelfAttentionParams& p, const StepInRun& run, StepWork* work) {
    AddAttention(run.program.kinds[p.kind], DType::kF32, run.rows * run.rows, work);
  }

  static void Dump(const SelfAttentionParams& p, const Step& step, StepText* text) {
    text->PrintWeight("relative_position_bias", p.relative_position_bias);
    text->Print(" kind %u layer %u", p.kind, step.layer);
  }
};

}  // namespace

constinit const OpContract kSelfAttentionOp =
    MakeOp<SelfAttentionContract>("self_attention", kHasIn | kHasOut | kInEncoder);

}  // namespace arn
