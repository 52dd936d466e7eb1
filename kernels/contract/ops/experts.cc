#include "kernels/contract/ops/op_contract.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

struct ExpertsContract : OpDefaults<ExpertsParams> {
  static void Operands(const ExpertsParams& p, StepOperands* out) {
    for (const ValueId id : {p.topk, p.gathered, p.gate_up, p.activated, p.expert_out}) {
      out->AddValue(id);
    }
    out->first_matrix = p.weight;
    out->n_matrices = 2u * p.n_experts;
    out->accumulates = p.accumulate;
  }

  static Status Check(const ExpertsParams& p, const StepCheck& check) {
    const uint32_t width = check.Width(check.step().in), out = check.Width(check.step().out);
    const uint32_t ffn = check.Width(p.activated), up_rows = p.is_gated ? 2 * ffn : ffn;
    ARN_TRY(check.HasWidth("top-k width", p.topk, 2u * p.n_chosen));
    ARN_TRY(check.IsKnown(p.activation, p.is_gated, p.activation_limit));
    ARN_TRY(check.HasWidth("gathered width", p.gathered, width));
    ARN_TRY(check.HasWidth("gate_up width", p.gate_up, up_rows));
    ARN_TRY(check.Exists("activated", p.activated));
    ARN_TRY(check.HasWidth("result width", p.expert_out, out));
    for (uint32_t e = 0; e < p.n_experts; ++e) {
      ARN_TRY(check.Matrix(p.gate_up_of(e), up_rows, width));
      ARN_TRY(check.Matrix(p.down_of(e), out, ffn));
    }
    return Status::kOk;
  }

  // The two matrices have the same shapes in all experts.
  static void Work(const ExpertsParams& p, const StepInRun& run, StepWork* work) {
    const uint64_t chosen = run.rows * p.n_chosen;
    const uint64_t used = Min<uint64_t>(p.n_experts, chosen);
    for (const WeightId id : {p.gate_up_of(0), p.down_of(0)}) {
      work->weight_bytes += used * run.weight(id).bytes;
      AddMatmul(run.weight(id), chosen, work);
    }
  }

  static void Dump(const ExpertsParams& p, const Step&, StepText* text) {
    text->PrintWeight("weight", p.weight);
    text->Print(" topk %%%u %u of %u %s%s%s", p.topk, p.n_chosen, p.n_experts,
                ActivationName(p.activation), p.is_gated ? "" : " without gate",
                p.weighs_input ? " weighs input" : "");
    if (p.accumulate) text->Print(" +=");
  }
};

}  // namespace

constinit const OpContract kExpertsOp =
    MakeOp<ExpertsContract>("experts", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
