#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct QkvRopeContract : OpDefaults<QkvRopeParams> {
  static void Operands(const QkvRopeParams& p, StepOperands* out) {
    out->AddValue(p.angles);
    out->AddWeight(p.q_norm);
    out->AddWeight(p.k_norm);
    out->AddWeight(p.v_norm);
  }

  static Status Check(const QkvRopeParams& p, const StepCheck& check) {
    const Program& program = check.program();
    const AttentionKind* kind = nullptr;
    if (check.is_encoder()) {
      ARN_TRY(check.Kind(p.kind, &kind));
      if (kind->group != kNoGroup || p.shares_kv) return check.ValueError("group", kind->group, 0);
      ARN_TRY(check.HasWidth("input width", check.step().in,
                             uint64_t{kind->n_heads + 2 * kind->n_kv_heads} * kind->head_dim));
    } else {
      ARN_TRY(check.PagedKind(p.kind, p.group_layer, p.shares_kv, &kind));
    }
    if (kind->rope != kNoRope) {
      if (kind->rope >= program.ropes.size()) return check.ValueError("rope", kind->rope, 0);
      const RopeKind& rope = program.ropes[kind->rope];
      if (rope.rotary_dim > kind->head_dim) {
        return check.ValueError("rotary_dim", rope.rotary_dim, kind->head_dim);
      }
      ARN_TRY(check.HasWidth("angles width", p.angles, rope.rotary_dim));
    }
    for (WeightId id : {p.q_norm, p.k_norm}) {
      if (id != kNoWeight && id >= program.weights.size()) {
        return check.ValueError("norm weight", id, 0);
      }
    }
    const bool spans_heads = NormsSpanHeads(program, p);
    const auto norm = [&](WeightId id, uint32_t n_heads) {
      if (id == kNoWeight) return Status::kOk;
      return check.Vector("norm weight", id,
                          spans_heads ? n_heads * kind->head_dim : kind->head_dim);
    };
    ARN_TRY(norm(p.q_norm, kind->n_heads));
    ARN_TRY(norm(p.k_norm, kind->n_kv_heads));
    return p.v_norm == kNoWeight ? Status::kOk : check.Vector("v norm", p.v_norm, kind->head_dim);
  }

  static void Dump(const QkvRopeParams& p, const Step& step, StepText* text) {
    if (p.angles != kNoValue) text->Print(" angles %%%u", p.angles);
    text->PrintWeight("q_norm", p.q_norm);
    text->PrintWeight("k_norm", p.k_norm);
    text->PrintWeight("v_norm", p.v_norm);
    text->Print(" kind %u layer %u", p.kind, step.layer);
    if (p.shares_kv) text->Print(" shares kv %u", p.group_layer);
  }
};

}  // namespace

constinit const OpContract kQkvRopeOp =
    MakeOp<QkvRopeContract>("qkv_rope", kHasIn | kInEncoder | kInDecoder);

}  // namespace arn
