#include "runtime/model/read_kind.h"

#include <limits>

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

constexpr float kAnyFloat = std::numeric_limits<float>::max();

bool FitsGroup(const LayerKind& kind, const KvGroupSpec& group) {
  return group.state_floats == kind.state_floats() && group.n_kv_heads == kind.n_kv_heads &&
         group.head_dim == kind.head_dim && group.window == kind.window &&
         group.chunk == kind.chunk;
}

// One overload per type of field: enums refuse unknown values.
template <typename T>
Status ReadField(const char*, T value, T* out, Diag*) {
  *out = value;
  return Status::kOk;
}
Status ReadField(const char* field, fbs::NormKind value, NormKind* out, Diag* diag) {
  return ReadNormKind(field, value, out, diag);
}
Status ReadField(const char* field, fbs::Activation value, Activation* out, Diag* diag) {
  return ReadActivation(field, value, out, diag);
}
Status ReadField(const char* field, fbs::RouteScore value, RouteScore* out, Diag* diag) {
  return ReadRouteScore(field, value, out, diag);
}
Status ReadField(const char* field, fbs::Mixer value, Mixer* out, Diag* diag) {
  return ReadMixer(field, value, out, diag);
}

// Enums and bools have no range.
template <typename T>
Status CheckField(const char*, T, uint32_t, uint32_t, Diag*) {
  return Status::kOk;
}
Status CheckField(const char* field, uint32_t value, uint32_t low, uint32_t high, Diag* diag) {
  return CheckRange(field, value, low, high, diag);
}
Status CheckField(const char* field, float value, float low, float high, Diag* diag) {
  if (high < kAnyFloat) return CheckFloatRange(field, value, low, high, diag);
  return low == 0.0f ? CheckSoftcap(field, value, diag) : CheckFinite(field, value, diag);
}

Status CheckAttention(const LayerKind& kind, Span<const RopeKind> ropes, Diag* diag) {
  if (kind.n_heads % kind.n_kv_heads != 0) {
    return diag->Fail(Status::kBadBundle, "model.kinds: %u heads are not a multiple of %u kv heads",
                      kind.n_heads, kind.n_kv_heads);
  }
  if (kind.rope != kNoRope && kind.rope >= ropes.size()) {
    return diag->Fail(Status::kBadBundle, "model.kinds.rope is %u of %zu", kind.rope, ropes.size());
  }
  if (kind.rope != kNoRope && ropes[kind.rope].rotary_dim > kind.head_dim) {
    return diag->Fail(Status::kBadBundle, "model.kinds: rotary_dim %u exceeds head_dim %u",
                      ropes[kind.rope].rotary_dim, kind.head_dim);
  }
  return Status::kOk;
}

Status CheckFeedForward(const LayerKind& kind, Diag* diag) {
  if (kind.activation == Activation::kClampedSwiglu &&
      (!kind.is_gated || kind.activation_limit == 0.0f)) {
    return diag->Fail(
        Status::kBadBundle, "model.kinds: clamped SwiGLU needs a gate and a limit, found %s and %g",
        kind.is_gated ? "a gate" : "none", static_cast<double>(kind.activation_limit));
  }
  if (kind.activation == Activation::kXielu && kind.is_gated) {
    return diag->Fail(Status::kUnsupported, "model.kinds: xielu with a gate");
  }
  if (kind.qk_norm_follows_rope && kind.qk_norm_spans_heads) {
    return diag->Fail(Status::kUnsupported, "model.kinds: norms over all heads after rope");
  }
  if (kind.n_experts != 0 && (!kind.is_gated || kind.is_parallel)) {
    return diag->Fail(Status::kUnsupported, "model.kinds: experts that are %s",
                      kind.is_gated ? "parallel to attention" : "not gated");
  }
  if (kind.ffn_dim == 0 && (kind.is_parallel || kind.n_experts != 0)) {
    return diag->Fail(Status::kBadBundle, "model.kinds: experts or parallel blocks with ffn_dim 0");
  }
  return Status::kOk;
}

}  // namespace

Status ReadKind(const fbs::LayerKind& stored, Span<const RopeKind> ropes, LayerKindSpec* out,
                Diag* diag) {
  LayerKind& kind = *out;
#define ARN_READ(type, name, initial, low, high) \
  ARN_TRY(ReadField("kinds." #name, stored.name(), &kind.name, diag));
  ARN_LAYER_KIND_FIELDS(ARN_READ)
#undef ARN_READ
  const uint32_t has_state = kind.has_state() ? 1 : 0, has_attention = 1 - has_state;
  const uint32_t is_scan = kind.mixer == Mixer::kScan ? 1 : 0;
#define ARN_CHECK(type, name, initial, low, high) \
  ARN_TRY(CheckField("kinds." #name, kind.name, low, high, diag));
  ARN_LAYER_KIND_FIELDS(ARN_CHECK)
#undef ARN_CHECK
  if (!kind.has_state()) ARN_TRY(CheckAttention(kind, ropes, diag));
  // One tap needs no state, and a group of size 0 is not allowed.
  if (kind.mixer == Mixer::kConv && kind.conv_taps == 1) {
    return diag->Fail(Status::kUnsupported, "model.kinds.conv_taps is 1");
  }
  return CheckFeedForward(kind, diag);
}

AttentionKind AttentionOf(const LayerKindSpec& kind) {
  AttentionKind attention;
  attention.group = kind.group;
  if (kind.has_state()) return attention;
  attention.n_heads = kind.n_heads;
  attention.n_kv_heads = kind.n_kv_heads;
  attention.head_dim = kind.head_dim;
  attention.window = kind.window;
  attention.chunk = kind.chunk;
  attention.attention_scale = kind.attention_scale;
  attention.softcap = kind.softcap;
  attention.rope = kind.rope;
  attention.query_temperature = kind.query_temperature;
  attention.query_temperature_step = kind.query_temperature_step;
  attention.query_temperature_shift = kind.query_temperature_shift;
  attention.qk_norm_follows_rope = kind.qk_norm_follows_rope;
  attention.qkv_clip = kind.qkv_clip;
  return attention;
}

Status PlaceInGroup(LayerKindSpec* kind, ModelSpec* spec, Diag* diag) {
  uint32_t group = 0;
  while (group < spec->n_groups && !FitsGroup(*kind, spec->groups[group])) ++group;
  if (group == kMaxKvGroups) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds: more than %u different KV shapes, windows and chunks",
                      kMaxKvGroups);
  }
  if (group == spec->n_groups) {
    spec->groups[group].state_floats = kind->state_floats();
    spec->groups[group].n_kv_heads = kind->n_kv_heads;
    spec->groups[group].head_dim = kind->head_dim;
    spec->groups[group].window = kind->window;
    spec->groups[group].chunk = kind->chunk;
    ++spec->n_groups;
  }
  kind->group = group;
  return Status::kOk;
}

}  // namespace arn
