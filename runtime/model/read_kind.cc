#include "runtime/model/read_kind.h"

#include "kernels/pack/pack.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_tensor.h"

namespace arn {
namespace {

// Bounds far above any known model. They keep every product below in 64 bits and limit the memory
// that a hostile bundle can request.
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxExperts = 4096;

bool FitsGroup(const AttentionKind& kind, uint64_t state_floats, const KvGroupSpec& group) {
  return group.state_floats == state_floats && group.n_kv_heads == kind.n_kv_heads &&
         group.head_dim == kind.head_dim && group.window == kind.window &&
         group.chunk == kind.chunk;
}

Status ReadAttention(const fbs::LayerKind& kind, Span<const RopeKind> ropes, LayerKindSpec* out,
                     Diag* diag) {
  AttentionKind& attention = out->attention;
  ARN_TRY(CheckRange("kinds.n_heads", kind.n_heads(), 1, kMaxHeads, diag));
  ARN_TRY(CheckRange("kinds.n_kv_heads", kind.n_kv_heads(), 1, kind.n_heads(), diag));
  ARN_TRY(CheckRange("kinds.head_dim", kind.head_dim(), 2, kMaxHeadDim, diag));
  ARN_TRY(CheckRange("kinds.window", kind.window(), 0, kMaxContext, diag));
  ARN_TRY(CheckRange("kinds.chunk", kind.chunk(), 0, kMaxContext, diag));
  ARN_TRY(CheckFinite("kinds.attention_scale", kind.attention_scale(), diag));
  ARN_TRY(CheckSoftcap("kinds.softcap", kind.softcap(), diag));
  if (kind.n_heads() % kind.n_kv_heads() != 0) {
    return diag->Fail(Status::kBadBundle, "model.kinds: %u heads are not a multiple of %u kv heads",
                      kind.n_heads(), kind.n_kv_heads());
  }
  if (kind.rope() != kNoRope && kind.rope() >= ropes.size()) {
    return diag->Fail(Status::kBadBundle, "model.kinds.rope is %u of %zu", kind.rope(),
                      ropes.size());
  }
  if (kind.rope() != kNoRope && ropes[kind.rope()].rotary_dim > kind.head_dim()) {
    return diag->Fail(Status::kBadBundle, "model.kinds: rotary_dim %u exceeds head_dim %u",
                      ropes[kind.rope()].rotary_dim, kind.head_dim());
  }
  ARN_TRY(CheckFinite("kinds.query_temperature", kind.query_temperature(), diag));
  if (kind.query_temperature() != 0.0f) {
    ARN_TRY(CheckRange("kinds.query_temperature_step", kind.query_temperature_step(), 1,
                       kMaxContext, diag));
  }
  attention.temperature = kind.query_temperature();
  attention.temperature_step = kind.query_temperature_step();
  attention.n_heads = kind.n_heads();
  attention.n_kv_heads = kind.n_kv_heads();
  attention.head_dim = kind.head_dim();
  attention.window = kind.window();
  attention.chunk = kind.chunk();
  attention.scale = kind.attention_scale();
  attention.softcap = kind.softcap();
  attention.rope = kind.rope();
  out->has_qk_norm = kind.has_qk_norm();
  out->qk_norm_spans_heads = kind.qk_norm_spans_heads();
  return Status::kOk;
}

}  // namespace

Status ReadKind(const fbs::LayerKind& kind, Span<const RopeKind> ropes, LayerKindSpec* out,
                Diag* diag) {
  ARN_TRY(ReadMixerKind(kind, &out->mixer, diag));
  if (!out->mixer.has_state()) ARN_TRY(ReadAttention(kind, ropes, out, diag));
  ARN_TRY(CheckRange("kinds.ffn_dim", kind.ffn_dim(), 0, kMaxWidth / 2, diag));
  ARN_TRY(CheckEpsilon("kinds.norm_epsilon", kind.norm_epsilon(), diag));
  ARN_TRY(ReadNormKind("kinds.norm", kind.norm(), &out->norm, diag));
  ARN_TRY(ReadActivation("kinds.activation", kind.activation(), &out->activation, diag));
  ARN_TRY(CheckSoftcap("kinds.activation_limit", kind.activation_limit(), diag));
  if (out->activation == Activation::kClampedSwiglu &&
      (!kind.is_gated() || kind.activation_limit() == 0.0f)) {
    return diag->Fail(
        Status::kBadBundle, "model.kinds: clamped SwiGLU needs a gate and a limit, found %s and %g",
        kind.is_gated() ? "a gate" : "none", static_cast<double>(kind.activation_limit()));
  }
  out->activation_limit = kind.activation_limit();
  out->ffn_dim = kind.ffn_dim();
  out->norm_epsilon = kind.norm_epsilon();
  out->is_gated = kind.is_gated();
  out->is_parallel = kind.is_parallel();
  ARN_TRY(CheckRange("kinds.n_experts", kind.n_experts(), 0, kMaxExperts, diag));
  if (kind.n_experts() != 0) {
    ARN_TRY(CheckRange("kinds.n_experts_used", kind.n_experts_used(), 1, kind.n_experts(), diag));
    if (!kind.is_gated() || kind.is_parallel()) {
      return diag->Fail(Status::kUnsupported, "model.kinds: experts that are %s",
                        kind.is_gated() ? "parallel to attention" : "not gated");
    }
  }
  out->n_experts = kind.n_experts();
  out->n_experts_used = kind.n_experts_used();
  out->norm_topk_prob = kind.renormalises_routes();
  ARN_TRY(ReadRouteScore(kind.route_score(), &out->route_score, diag));
  out->weighs_input = kind.routes_weigh_input();
  ARN_TRY(CheckRange("kinds.shared_ffn_dim", kind.shared_ffn_dim(), 0,
                     kind.n_experts() == 0 ? 0 : kMaxWidth / 2, diag));
  out->shared_ffn_dim = kind.shared_ffn_dim();
  if (kind.ffn_dim() == 0 && (kind.is_parallel() || kind.n_experts() != 0)) {
    return diag->Fail(Status::kBadBundle, "model.kinds: experts or parallel blocks with ffn_dim 0");
  }
  return Status::kOk;
}

Status PlaceInGroup(LayerKindSpec* kind, ModelSpec* spec, Diag* diag) {
  AttentionKind& attention = kind->attention;
  const uint32_t state_floats = kind->mixer.state_floats();
  uint32_t group = 0;
  while (group < spec->n_groups && !FitsGroup(attention, state_floats, spec->groups[group]))
    ++group;
  if (group == kMaxKvGroups) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds: more than %u different KV shapes, windows and chunks",
                      kMaxKvGroups);
  }
  if (group == spec->n_groups) {
    spec->groups[group].state_floats = state_floats;
    spec->groups[group].n_kv_heads = attention.n_kv_heads;
    spec->groups[group].head_dim = attention.head_dim;
    spec->groups[group].window = attention.window;
    spec->groups[group].chunk = attention.chunk;
    ++spec->n_groups;
  }
  attention.group = group;
  return Status::kOk;
}

}  // namespace arn
