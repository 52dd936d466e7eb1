#include "runtime/model/read_kind.h"

#include <limits>

#include "kernels/contract/streams.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_tensor.h"

namespace arn {
namespace {

// Bounds far above any known model. They keep every product below in 64 bits and limit the memory
// that a hostile bundle can request.
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxExperts = 4096;
constexpr uint32_t kMaxStateFloats = 1u << 28;  // of a layer and sequence

constexpr float kAnyFloat = std::numeric_limits<float>::max();

bool AreSame(const KvGroupSpec& a, const KvGroupSpec& b) {
  return a.state_floats == b.state_floats && a.n_kv_heads == b.n_kv_heads &&
         a.head_dim == b.head_dim && a.window == b.window && a.chunk == b.chunk &&
         a.keys_only == b.keys_only;
}

// Finds or adds the group of this shape.
Status FindGroup(const KvGroupSpec& shape, ModelSpec* spec, uint32_t* out, Diag* diag) {
  uint32_t group = 0;
  while (group < spec->n_groups && !AreSame(shape, spec->groups[group])) ++group;
  if (group == kMaxKvGroups) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds: more than %u different KV shapes, windows and chunks",
                      kMaxKvGroups);
  }
  if (group == spec->n_groups) spec->groups[spec->n_groups++] = shape;
  *out = group;
  return Status::kOk;
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

// Enums have no range.
template <typename T>
Status CheckField(const char*, T, uint32_t, uint32_t, Diag*) {
  return Status::kOk;
}
Status CheckField(const char* field, bool value, uint32_t low, uint32_t high, Diag* diag) {
  return CheckRange(field, value ? 1 : 0, low, high, diag);
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
  if (!kind.is_latent()) return Status::kOk;
  const uint32_t rotated = kind.rope == kNoRope ? 0 : ropes[kind.rope].rotary_dim;
  if (kind.n_kv_heads != 1 || rotated == 0 || kind.head_dim != kind.latent_dim + rotated ||
      kind.has_qk_norm) {
    return diag->Fail(Status::kBadBundle,
                      "model.kinds: a latent of %u and %u rotated elements in %u heads of %u%s",
                      kind.latent_dim, rotated, kind.n_kv_heads, kind.head_dim,
                      kind.has_qk_norm ? ", with a norm of q and k" : "");
  }
  return Status::kOk;
}

// REQUIRES: the fields are in their ranges.
Status CheckLinearAttention(const LayerKind& kind, Diag* diag) {
  if (kind.linear_heads % kind.linear_key_heads != 0) {
    return diag->Fail(
        Status::kBadBundle,
        "model.kinds: %u heads of linear attention are not a multiple of %u key heads",
        kind.linear_heads, kind.linear_key_heads);
  }
  const uint64_t states = uint64_t{kind.linear_heads} * kind.linear_key_dim * kind.linear_value_dim;
  const uint64_t taps = uint64_t{kind.conv_taps} * kind.conv_width();
  if (kind.mixer_in_width() > kMaxWidth || states + taps > kMaxStateFloats) {
    return diag->Fail(Status::kUnsupported,
                      "model.kinds: linear attention of width %u with %llu states, at most %u and "
                      "%u are supported",
                      kind.mixer_in_width(), static_cast<unsigned long long>(states), kMaxWidth,
                      kMaxStateFloats);
  }
  if (kind.mixer_norm_group != 0 && kind.mixer_out_width() % kind.mixer_norm_group != 0) {
    return diag->Fail(Status::kBadBundle, "model.kinds: groups of %u do not divide a width of %u",
                      kind.mixer_norm_group, kind.mixer_out_width());
  }
  if (kind.time_step_high != 0.0f && kind.time_step_high < kind.time_step_low) {
    return diag->Fail(Status::kBadBundle, "model.kinds: time steps of at least %g and at most %g",
                      static_cast<double>(kind.time_step_low),
                      static_cast<double>(kind.time_step_high));
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
  if (kind.n_experts != 0 && kind.activation == Activation::kXielu) {
    return diag->Fail(Status::kUnsupported, "model.kinds: experts with xielu");
  }
  if (kHasStreams && kind.has_gate_threshold &&
      (!kind.is_gated || kind.ffn_dim == 0 || kind.n_experts != 0)) {
    return diag->Fail(Status::kUnsupported, "model.kinds: a threshold %s",
                      kind.n_experts != 0 ? "of experts" : "without a gate");
  }
  if (kind.router_groups != 0) {
    const uint32_t experts = kind.n_experts / kind.router_groups;
    if (kind.n_experts % kind.router_groups != 0 || experts < 2 ||
        kind.n_experts_used > experts * kind.router_groups_used) {
      return diag->Fail(
          Status::kBadBundle, "model.kinds: %u of %u experts in %u of %u router groups",
          kind.n_experts_used, kind.n_experts, kind.router_groups_used, kind.router_groups);
    }
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
  const uint32_t has_state = kind.has_state() ? 1 : 0;
  const uint32_t has_attention = kind.has_attention() ? 1 : 0;
  const uint32_t is_scan = kind.mixer == Mixer::kScan ? 1 : 0;
  const uint32_t is_linear = kind.is_linear() ? 1 : 0, has_channels = has_state - is_linear;
#define ARN_CHECK(type, name, initial, low, high) \
  ARN_TRY(CheckField("kinds." #name, kind.name, low, high, diag));
  ARN_LAYER_KIND_FIELDS(ARN_CHECK)
#undef ARN_CHECK
  if (kind.has_attention()) ARN_TRY(CheckAttention(kind, ropes, diag));
  if (kind.is_linear()) ARN_TRY(CheckLinearAttention(kind, diag));
  // One tap needs no state, and a group of size 0 is not allowed.
  if (kind.mixer == Mixer::kConv && kind.conv_taps == 1) {
    return diag->Fail(Status::kUnsupported, "model.kinds.conv_taps is 1");
  }
  return CheckFeedForward(kind, diag);
}

AttentionKind AttentionOf(const LayerKindSpec& kind) {
  AttentionKind attention;
  attention.group = kind.group;
  if (!kind.has_attention()) return attention;
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
  attention.has_parts = kind.has_image_windows;
  return attention;
}

Status PlaceInGroup(LayerKindSpec* kind, ModelSpec* spec, Diag* diag) {
  if (kind->has_state()) {
    KvGroupSpec shape;
    shape.state_floats = kind->state_floats();
    ARN_TRY(FindGroup(shape, spec, &kind->state_group, diag));
  }
  if (!kind->has_attention()) return Status::kOk;
  KvGroupSpec shape;
  shape.n_kv_heads = kind->n_kv_heads;
  shape.head_dim = kind->head_dim;
  shape.window = kind->window;
  shape.chunk = kind->chunk;
  shape.keys_only = kind->is_latent();
  return FindGroup(shape, spec, &kind->group, diag);
}

}  // namespace arn
