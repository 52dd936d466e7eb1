#include "runtime/model/decoder_program.h"

#include <algorithm>

#include "platform/base/arith.h"
#include "runtime/model/encoder_program.h"
#include "runtime/model/layer_program.h"
#include "runtime/model/step_list.h"

namespace arn {
namespace {

constexpr uint32_t kStepsPerLayer = 22;
constexpr uint32_t kStepsOutsideLayers = 2;  // embedding, logits

// True if two layers have the same steps, so that value lifetimes of one fit the other.
bool SameSteps(const ModelSpec& spec, const LayerSpec& a, const LayerSpec& b) {
  const auto both = [](WeightId x, WeightId y) { return (x == kNoWeight) == (y == kNoWeight); };
  return spec.kinds[a.kind].is_parallel == spec.kinds[b.kind].is_parallel &&
         spec.kinds[a.kind].mixer == spec.kinds[b.kind].mixer &&
         (spec.kinds[a.kind].ffn_dim == 0) == (spec.kinds[b.kind].ffn_dim == 0) &&
         spec.kinds[a.kind].n_experts == spec.kinds[b.kind].n_experts &&
         both(a.attention_norm, b.attention_norm) &&
         both(a.attention_post_norm, b.attention_post_norm) && both(a.ffn_norm, b.ffn_norm) &&
         both(a.ffn_post_norm, b.ffn_post_norm) && both(a.cross_q, b.cross_q);
}

// Returns the first layer type that satisfies the predicate; null if none does.
template <typename Predicate>
const LayerKindSpec* FirstThat(const ModelSpec& spec, const Predicate& is_it) {
  for (const LayerKindSpec& kind : spec.kinds) {
    if (is_it(kind)) return &kind;
  }
  return nullptr;
}

// Returns the first layer type with experts, or without.
const LayerKindSpec* FirstKind(const ModelSpec& spec, bool has_experts) {
  return FirstThat(spec, [&](const LayerKindSpec& kind) {
    return kind.ffn_dim != 0 && (kind.n_experts != 0) == has_experts;
  });
}

const LayerKindSpec* FirstMixer(const ModelSpec& spec, bool has_state) {
  return FirstThat(spec,
                   [&](const LayerKindSpec& kind) { return kind.mixer.has_state() == has_state; });
}

bool SameFeedForward(const LayerKindSpec& a, const LayerKindSpec& b) {
  return a.ffn_dim == b.ffn_dim && a.is_gated == b.is_gated && a.n_experts == b.n_experts &&
         a.n_experts_used == b.n_experts_used && a.shared_ffn_dim == b.shared_ffn_dim;
}

bool SameMixer(const LayerKindSpec& a, const LayerKindSpec& b) {
  return a.mixer == b.mixer && a.attention.n_heads == b.attention.n_heads &&
         a.attention.n_kv_heads == b.attention.n_kv_heads &&
         a.attention.head_dim == b.attention.head_dim;
}

// All layers must have the same widths: a value has one row stride.
Status CheckWidths(const ModelSpec& spec, Diag* diag) {
  for (const LayerKindSpec& kind : spec.kinds) {
    const bool has_same_ffn =
        kind.ffn_dim == 0 || SameFeedForward(kind, *FirstKind(spec, kind.n_experts != 0));
    if (!has_same_ffn || !SameMixer(kind, *FirstMixer(spec, kind.mixer.has_state()))) {
      return diag->Fail(Status::kUnsupported,
                        "model.kinds: layers with different head counts, states, ffn_dim or "
                        "experts in one model");
    }
  }
  return Status::kOk;
}

void AddAttentionValues(const ModelSpec& spec, StepList* builder, LayerValues* v) {
  const LayerKindSpec* kind = FirstMixer(spec, false);
  if (kind == nullptr) return;
  const AttentionKind& shape = kind->attention;
  const uint32_t q_width = shape.n_heads * shape.head_dim;
  v->qkv = builder->NewValue("qkv", q_width + 2 * shape.n_kv_heads * shape.head_dim);
  v->attention = builder->NewValue("attention", q_width);
  for (const LayerSpec& layer : spec.layers) {
    if (layer.shares_kv && v->q == kNoValue) v->q = builder->NewValue("q", q_width);
    if (layer.cross_q != kNoWeight && v->cross_q == kNoValue) {
      v->cross_q = builder->NewValue("cross_q", q_width);
    }
  }
}

// Adds the feed-forward values of layers with experts and of dense layers.
void AddFeedForwardValues(const ModelSpec& spec, StepList* builder, LayerValues* v) {
  if (const LayerKindSpec* dense = FirstKind(spec, false)) {
    v->gate_up = builder->NewValue("gate_up", (dense->is_gated ? 2 : 1) * dense->ffn_dim);
    if (dense->is_gated) v->activated = builder->NewValue("activated", dense->ffn_dim);
  }
  if (const LayerKindSpec* sparse = FirstKind(spec, true)) {
    v->route_logits = builder->NewValue("route_logits", sparse->n_experts);
    v->topk = builder->NewValue("routes", 2 * sparse->n_experts_used);
    v->expert_scratch = builder->NewValue("gathered", spec.hidden);
    builder->NewValue("expert_gate_up", 2 * sparse->ffn_dim);
    builder->NewValue("expert_activated", sparse->ffn_dim);
    builder->NewValue("expert_out", spec.hidden);
    if (sparse->shared_ffn_dim == 0) return;
    v->shared_gate_up = builder->NewValue("shared_gate_up", 2 * sparse->shared_ffn_dim);
    v->shared_activated = builder->NewValue("shared_activated", sparse->shared_ffn_dim);
  }
}

}  // namespace

uint64_t DecoderProgramBytes(const fbs::Model& model) {
  const uint64_t n_layers = model.layers() == nullptr ? 0 : model.layers()->size();
  const uint64_t n_kinds = model.kinds() == nullptr ? 0 : model.kinds()->size();
  return (n_layers * kStepsPerLayer + kStepsOutsideLayers + kMaxRopeKinds) * sizeof(Step) +
         (EncoderSteps(model.source()) + 2 * n_layers) * sizeof(Step) + kMaxValues * sizeof(Value) +
         (2 * n_kinds + EncoderKinds(model.source())) * sizeof(AttentionKind) + 3 * kSliceAlign;
}

Status BuildDecoderProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag) {
  *out = Program();
  ARN_TRY(CheckWidths(spec, diag));
  const uint64_t n_layers = spec.layers.size();
  const uint64_t max_steps = n_layers * kStepsPerLayer + kStepsOutsideLayers + spec.ropes.size() +
                             EncoderSteps(spec.encoder, n_layers);
  ARN_ASSIGN(Span<Step> steps, arena->AllocateArray<Step>(max_steps));
  ARN_ASSIGN(Span<Value> values, arena->AllocateArray<Value>(kMaxValues));
  ARN_ASSIGN(Span<AttentionKind> kinds, arena->AllocateArray<AttentionKind>(ProgramKinds(spec)));
  FillKinds(spec, kinds);

  StepList builder(steps, values);
  if (spec.encoder.exists()) AddEncoder(spec, &builder);
  out->n_encoder_steps = builder.n_steps();
  LayerValues v;
  v.x = builder.NewValue("x", spec.hidden);
  v.normed = builder.NewValue("normed", spec.hidden);
  AddAttentionValues(spec, &builder, &v);
  if (const LayerKindSpec* kind = FirstMixer(spec, true)) {
    v.mixer = NewMixerValues(kind->mixer, &builder);
  }
  v.ffn_normed = kNoValue;
  if (FirstKind(spec, false) != nullptr || FirstKind(spec, true) != nullptr) {
    v.ffn_normed = builder.NewValue("ffn_normed", spec.hidden);
  }
  AddFeedForwardValues(spec, &builder, &v);

  Step embed;
  embed.op = Op::kEmbed;
  embed.out = v.x;
  embed.weight = spec.embedding;
  embed.factor = spec.embedding_factor;
  embed.positions = spec.positions;
  builder.Add(embed);
  ValueId angles[kMaxRopeKinds];
  for (uint32_t i = 0; i < spec.ropes.size(); ++i) {
    angles[i] = builder.NewValue("angles", spec.ropes[i].rotary_dim);
    Step step;
    step.op = Op::kRopeAngles;
    step.out = angles[i];
    step.rope = static_cast<uint16_t>(i);
    builder.Add(step);
  }
  bool is_uniform = true;
  for (const LayerSpec& layer : spec.layers) {
    is_uniform = is_uniform && SameSteps(spec, layer, spec.layers[0]);
  }
  for (uint32_t i = 0; i < n_layers; ++i) {
    const LayerSpec& layer = spec.layers[i];
    const auto n_kinds = static_cast<uint32_t>(spec.kinds.size());
    const LayerPlace place = {i, layer.kind, n_kinds + layer.kind, false};
    AddLayer(layer, spec.kinds[layer.kind], place, v, angles, &builder);
    if (i == 0 && is_uniform) {
      for (ValueId id = v.x; id < builder.n_values(); ++id) {
        const bool crosses_layers = id == v.x || std::find(angles, angles + spec.ropes.size(),
                                                           id) != angles + spec.ropes.size();
        if (!crosses_layers) builder.FreezeLifetimes(id);
      }
      // The first layer has its own KV. In layers without, q replaces qkv and takes its lifetime.
      if (v.q != kNoValue) {
        values[v.q].first_step = values[v.qkv].first_step;
        values[v.q].last_step = values[v.qkv].last_step;
        builder.FreezeLifetimes(v.q);
      }
    }
  }
  Step logits;
  logits.op = Op::kLogits;
  logits.layer = static_cast<uint16_t>(n_layers);
  logits.in = v.x;
  logits.norm_kind = spec.final_norm_kind;
  logits.norm = spec.final_norm;
  logits.bias = spec.final_norm_bias;
  logits.factor = spec.logits_factor;
  logits.softcap = spec.logits_softcap;
  logits.epsilon = spec.final_norm_epsilon;
  logits.weight = spec.head;
  builder.Add(logits);
  // The first layer need not use every RoPE type; keep all tables alive to the end.
  for (uint32_t i = 0; i < spec.ropes.size(); ++i)
    values[angles[i]].last_step = builder.n_steps() - 1;

  out->steps = steps.subspan(0, builder.n_steps());
  out->values = values.subspan(0, builder.n_values());
  out->weights = spec.weights;
  out->kinds = kinds;
  out->ropes = spec.ropes;
  out->vocab = spec.vocab;
  out->max_context = spec.max_context;
  return Status::kOk;
}

}  // namespace arn
