#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

struct StoreKvContract : OpDefaults<StoreKvParams> {
  static Status Check(const StoreKvParams& p, const StepCheck& check) {
    const Program& program = check.program();
    const AttentionKind* kind = nullptr;
    ARN_TRY(check.Kind(p.kind, &kind));
    if (kind->group >= program.kv_groups.size()) {
      return check.ValueError("group", kind->group, program.kv_groups.size());
    }
    const KvGroup& group = program.kv_groups[kind->group];
    if (!group.is_encoder) return check.ValueError("encoder group", kind->group, 1);
    if (p.group_layer >= group.n_layers) {
      return check.ValueError("group_layer", p.group_layer, group.n_layers);
    }
    return check.HasWidth("input width", check.step().in,
                          2 * uint64_t{kind->n_kv_heads} * kind->head_dim);
  }

  static void Dump(const StoreKvParams& p, const Step& step, StepText* text) {
    text->Print(" kind %u layer %u", p.kind, step.layer);
  }
};

}  // namespace

constinit const OpContract kStoreKvOp = MakeOp<StoreKvContract>("store_kv", kHasIn | kInEncoder);

}  // namespace arn
