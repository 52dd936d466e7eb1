#include "runtime/model/model_spec.h"

#include <cmath>

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_rope.h"
#include "runtime/model/read_tensor.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {
namespace {

// Bounds far above any known model. They keep every product below in 64 bits and stop a hostile
// bundle from asking for absurd memory.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxKinds = 256;
constexpr uint32_t kMaxTensors = 1u << 20;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxExperts = 4096;
constexpr uint32_t kMaxContext = 1u << 24;
constexpr uint32_t kNoIndex = UINT32_MAX;  // of an absent field of fbs::Layer

Status CheckSoftcap(const char* field, float value, Diag* diag) {
  if (std::isfinite(value) && value >= 0.0f) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is %g, expected 0 or a positive number", field,
                    static_cast<double>(value));
}

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

Status ReadKind(const fbs::LayerKind& kind, Span<const RopeKind> ropes, ModelSpec* spec,
                LayerKindSpec* out, Diag* diag) {
  AttentionKind& attention = out->attention;
  ARN_TRY(ReadMixerKind(kind, &out->mixer, diag));
  if (!out->mixer.has_state()) ARN_TRY(ReadAttention(kind, ropes, out, diag));
  ARN_TRY(CheckRange("kinds.ffn_dim", kind.ffn_dim(), 0, kMaxWidth / 2, diag));
  ARN_TRY(CheckEpsilon("kinds.norm_epsilon", kind.norm_epsilon(), diag));
  ARN_TRY(ReadNormKind("kinds.norm", kind.norm(), &out->norm, diag));
  ARN_TRY(ReadActivation(kind.activation(), &out->activation, diag));
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
  out->renormalises_routes = kind.renormalises_routes();
  ARN_TRY(ReadRouteScore(kind.route_score(), &out->route_score, diag));
  out->routes_weigh_input = kind.routes_weigh_input();
  ARN_TRY(CheckRange("kinds.shared_ffn_dim", kind.shared_ffn_dim(), 0,
                     kind.n_experts() == 0 ? 0 : kMaxWidth / 2, diag));
  out->shared_ffn_dim = kind.shared_ffn_dim();
  if (kind.ffn_dim() == 0 && (kind.is_parallel() || kind.n_experts() != 0)) {
    return diag->Fail(Status::kBadBundle, "model.kinds: experts or parallel blocks with ffn_dim 0");
  }

  const uint32_t state_floats = out->mixer.state_floats();
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

// Whose keys and values the layer uses.
Status PlaceKv(const fbs::Layer& layer, uint32_t index, const ModelSpec& spec, LayerSpec* out,
               Diag* diag) {
  if (layer.kv_layer() == kNoIndex) return Status::kOk;
  if (layer.kv_layer() >= index || spec.kinds[layer.kind()].mixer.has_state() ||
      spec.layers[layer.kv_layer()].shares_kv) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: kv_layer is %u, expected an earlier layer with its own KV", index,
                      layer.kv_layer());
  }
  const LayerSpec& source = spec.layers[layer.kv_layer()];
  const uint32_t group = spec.kinds[layer.kind()].attention.group;
  if (spec.kinds[source.kind].attention.group != group) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: kv_layer %u has another KV shape, window or chunk", index,
                      layer.kv_layer());
  }
  out->shares_kv = true;
  out->group_layer = source.group_layer;
  return Status::kOk;
}

// A norm that may be absent, and its bias when it is one of NormKind::kLayer.
Status ReadNorm(const char* place, uint32_t layer, uint32_t weight, uint32_t bias, NormKind kind,
                uint64_t size, Shapes* shapes, WeightId* out_weight, WeightId* out_bias) {
  if (weight == kNoIndex) return Status::kOk;
  ARN_TRY(shapes->Vector(place, layer, weight, size));
  *out_weight = weight;
  if (kind != NormKind::kLayer) return Status::kOk;
  ARN_TRY(shapes->Vector(place, layer, bias, size));
  *out_bias = bias;
  return Status::kOk;
}

// Norms behind a block are RMS ones: no known model has another.
Status ReadNorms(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                 uint64_t hidden, Shapes* shapes, LayerSpec* out) {
  ARN_TRY(ReadNorm("attention_norm", index, layer.attention_norm(), layer.attention_norm_bias(),
                   kind.norm, hidden, shapes, &out->attention_norm, &out->attention_norm_bias));
  ARN_TRY(ReadNorm("ffn_norm", index, layer.ffn_norm(), layer.ffn_norm_bias(), kind.norm, hidden,
                   shapes, &out->ffn_norm, &out->ffn_norm_bias));
  ARN_TRY(ReadNorm("attention_post_norm", index, layer.attention_post_norm(), kNoIndex,
                   NormKind::kRms, hidden, shapes, &out->attention_post_norm, nullptr));
  return ReadNorm("ffn_post_norm", index, layer.ffn_post_norm(), kNoIndex, NormKind::kRms, hidden,
                  shapes, &out->ffn_post_norm, nullptr);
}

Status ReadFeedForward(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                       uint64_t hidden, Shapes* shapes, LayerSpec* out) {
  if (kind.ffn_dim == 0) return Status::kOk;
  const uint64_t up_rows = (kind.is_gated ? 2 : 1) * uint64_t{kind.ffn_dim};
  if (kind.n_experts == 0) {
    ARN_TRY(shapes->Matrix("gate_up", index, layer.gate_up(), up_rows, hidden));
    ARN_TRY(shapes->Matrix("down", index, layer.down(), hidden, kind.ffn_dim));
    out->gate_up = layer.gate_up();
    out->down = layer.down();
    return Status::kOk;
  }
  ARN_TRY(shapes->Matrix("router", index, layer.router(), kind.n_experts, hidden));
  for (uint64_t e = 0; e < kind.n_experts; ++e) {
    const uint64_t first = layer.experts() + 2 * e;
    const auto gate_up = static_cast<uint32_t>(Min<uint64_t>(first, kNoIndex));
    const auto down = static_cast<uint32_t>(Min<uint64_t>(first + 1, kNoIndex));
    ARN_TRY(shapes->Matrix("expert gate_up", index, gate_up, up_rows, hidden));
    ARN_TRY(shapes->Matrix("expert down", index, down, hidden, kind.ffn_dim));
  }
  out->router = layer.router();
  out->experts = layer.experts();
  if (kind.shared_ffn_dim == 0) return Status::kOk;
  ARN_TRY(shapes->Matrix("shared_gate_up", index, layer.shared_gate_up(),
                         2 * uint64_t{kind.shared_ffn_dim}, hidden));
  ARN_TRY(shapes->Matrix("shared_down", index, layer.shared_down(), hidden, kind.shared_ffn_dim));
  out->shared_gate_up = layer.shared_gate_up();
  out->shared_down = layer.shared_down();
  return Status::kOk;
}

Status ReadLayer(const fbs::Layer& layer, uint32_t index, ModelSpec* spec, LayerSpec* out,
                 Diag* diag) {
  if (layer.kind() >= spec->kinds.size()) {
    return diag->Fail(Status::kBadBundle, "layer %u: kind %u of %zu", index, layer.kind(),
                      spec->kinds.size());
  }
  const LayerKindSpec& kind = spec->kinds[layer.kind()];
  const AttentionKind& a = kind.attention;
  const uint64_t hidden = spec->hidden;
  const uint64_t q_width = uint64_t{a.n_heads} * a.head_dim;
  ARN_TRY(PlaceKv(layer, index, *spec, out, diag));
  const uint64_t kv_width = out->shares_kv ? 0 : uint64_t{a.n_kv_heads} * a.head_dim;
  Shapes shapes(spec->weights, diag);
  if (kind.mixer.has_state()) {
    ARN_TRY(ReadMixer(layer, index, kind.mixer, hidden, &shapes, &out->mixer));
  } else {
    ARN_TRY(shapes.Matrix("qkv", index, layer.qkv(), q_width + 2 * kv_width, hidden));
    out->qkv = layer.qkv();
  }
  const uint64_t out_width = kind.mixer.has_state() ? kind.mixer.width : q_width;
  ARN_TRY(shapes.Matrix("attention_out", index, layer.attention_out(), hidden, out_width));
  ARN_TRY(ReadFeedForward(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadNorms(layer, index, kind, hidden, &shapes, out));
  if (kind.is_parallel && (out->attention_norm == kNoWeight || out->ffn_norm == kNoWeight)) {
    return diag->Fail(Status::kBadBundle, "layer %u: parallel blocks without norms before them",
                      index);
  }
  if (kind.has_qk_norm) {
    const uint64_t q_size = kind.qk_norm_spans_heads ? q_width : a.head_dim;
    const uint64_t k_size =
        kind.qk_norm_spans_heads ? uint64_t{a.n_kv_heads} * a.head_dim : a.head_dim;
    ARN_TRY(shapes.Vector("q_norm", index, layer.q_norm(), q_size));
    ARN_TRY(shapes.Vector("k_norm", index, layer.k_norm(), k_size));
    out->q_norm = layer.q_norm();
    out->k_norm = layer.k_norm();
  }
  out->kind = layer.kind();
  if (layer.sinks() != kNoIndex) {
    ARN_TRY(shapes.Vector("sinks", index, layer.sinks(), a.n_heads));
    out->sinks = layer.sinks();
  }
  if (!out->shares_kv) out->group_layer = spec->groups[a.group].n_layers++;
  out->attention_out = layer.attention_out();
  return Status::kOk;
}

template <typename V>
uint64_t CountOf(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

Status ReadPositions(const fbs::Model& model, ModelSpec* out, Diag* diag) {
  if (model.positions() == kNoIndex) return Status::kOk;
  if (model.positions() >= out->weights.size()) {
    return diag->Fail(Status::kBadBundle, "model.positions: tensor %u of %zu", model.positions(),
                      out->weights.size());
  }
  const Weight& w = out->weights[model.positions()];
  if (w.is_vector || w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows ||
      w.rows < model.max_context() || w.cols != model.hidden()) {
    return diag->Fail(Status::kBadBundle,
                      "model.positions: tensor %u is a %s matrix of [%u, %u], expected f32 rows of "
                      "[%u or more, %u]",
                      model.positions(), DTypeName(w.dtype), w.rows, w.cols, model.max_context(),
                      model.hidden());
  }
  out->positions = model.positions();
  return Status::kOk;
}

}  // namespace

uint64_t ModelSpecBytes(const fbs::Model& model) {
  return CountOf(model.tensors()) * sizeof(Weight) +
         CountOf(model.ropes()) * (sizeof(RopeKind) + sizeof(LongRope)) +
         CountOf(model.kinds()) * sizeof(LayerKindSpec) +
         CountOf(model.layers()) * sizeof(LayerSpec) + 5 * kSliceAlign;
}

Status ReadModelSpec(const Bundle& bundle, Arena* arena, ModelSpec* out, Diag* diag) {
  *out = ModelSpec();
  const fbs::Model& model = *bundle.index->model();
  if (bundle.index->pack_version() != kPackVersion) {
    return diag->Fail(Status::kBundleVersion,
                      "weights are packed in version %u, this library reads %u: convert again",
                      bundle.index->pack_version(), kPackVersion);
  }
  ARN_TRY(CheckRange("hidden", model.hidden(), 1, kMaxWidth, diag));
  ARN_TRY(CheckRange("vocab", model.vocab(), 1, kMaxVocab, diag));
  ARN_TRY(CheckRange("max_context", model.max_context(), 1, kMaxContext, diag));
  ARN_TRY(CheckRange("kinds", CountOf(model.kinds()), 1, kMaxKinds, diag));
  ARN_TRY(CheckRange("ropes", CountOf(model.ropes()), 0, kMaxRopeKinds, diag));
  ARN_TRY(CheckRange("layers", CountOf(model.layers()), 1, kMaxLayers, diag));
  ARN_TRY(CheckRange("tensors", CountOf(model.tensors()), 1, kMaxTensors, diag));
  ARN_TRY(CheckEpsilon("final_norm_epsilon", model.final_norm_epsilon(), diag));
  out->hidden = model.hidden();
  out->vocab = model.vocab();
  out->max_context = model.max_context();
  out->final_norm_epsilon = model.final_norm_epsilon();

  ARN_ASSIGN(Span<Weight> weights, arena->AllocateArray<Weight>(model.tensors()->size()));
  for (uint32_t i = 0; i < weights.size(); ++i) {
    ARN_TRY(ReadTensor(bundle, *model.tensors()->Get(i), &weights[i], diag));
    out->weight_bytes += weights[i].bytes;
    out->n_parameters += uint64_t{weights[i].rows} * weights[i].cols;
  }
  out->weights = weights;

  ARN_ASSIGN(Span<RopeKind> ropes, arena->AllocateArray<RopeKind>(CountOf(model.ropes())));
  ARN_ASSIGN(Span<LongRope> long_ropes, arena->AllocateArray<LongRope>(ropes.size()));
  for (uint32_t i = 0; i < ropes.size(); ++i) {
    ARN_TRY(ReadRope(*model.ropes()->Get(i), &ropes[i], &long_ropes[i], diag));
  }
  out->ropes = ropes;
  out->long_ropes = long_ropes;

  ARN_ASSIGN(Span<LayerKindSpec> kinds, arena->AllocateArray<LayerKindSpec>(model.kinds()->size()));
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    ARN_TRY(ReadKind(*model.kinds()->Get(i), out->ropes, out, &kinds[i], diag));
  }
  out->kinds = kinds;

  ARN_ASSIGN(Span<LayerSpec> layers, arena->AllocateArray<LayerSpec>(model.layers()->size()));
  out->layers = layers;
  for (uint32_t i = 0; i < layers.size(); ++i) {
    ARN_TRY(ReadLayer(*model.layers()->Get(i), i, out, &layers[i], diag));
  }
  for (uint32_t g = 0; g < out->n_groups; ++g) {
    if (out->groups[g].n_layers == 0) {
      return diag->Fail(Status::kBadBundle, "model.kinds: a kind that no layer has");
    }
  }

  Shapes shapes(out->weights, diag);
  const uint32_t n_layers = model.layers()->size();
  ARN_TRY(shapes.Matrix("embedding", 0, model.embedding(), model.vocab(), model.hidden()));
  ARN_TRY(ReadNormKind("final_norm_kind", model.final_norm_kind(), &out->final_norm_kind, diag));
  ARN_TRY(ReadNorm("final_norm", n_layers, model.final_norm(), model.final_norm_bias(),
                   out->final_norm_kind, model.hidden(), &shapes, &out->final_norm,
                   &out->final_norm_bias));
  if (out->final_norm == kNoWeight) {
    return diag->Fail(Status::kBadBundle, "model.final_norm is absent");
  }
  ARN_TRY(shapes.Matrix("head", n_layers, model.head(), model.vocab(), model.hidden()));
  out->embedding = model.embedding();
  out->head = model.head();
  ARN_TRY(CheckFinite("embedding_factor", model.embedding_factor(), diag));
  ARN_TRY(CheckFinite("logits_factor", model.logits_factor(), diag));
  ARN_TRY(CheckSoftcap("logits_softcap", model.logits_softcap(), diag));
  out->embedding_factor = model.embedding_factor();
  out->logits_factor = model.logits_factor();
  out->logits_softcap = model.logits_softcap();
  return ReadPositions(model, out, diag);
}

}  // namespace arn
