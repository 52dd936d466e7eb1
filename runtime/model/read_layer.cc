#include "runtime/model/read_layer.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kNoIndex = UINT32_MAX;  // absent field of fbs::Layer

// Finds the layer whose keys and values this layer uses.
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

// Post-norms are RMS norms: no known model has another.
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

// Reads the relative position bias, per head. both_ways: bidirectional, else only keys before the
// query.
Status ReadRelativePositionBias(const fbs::Layer& layer, uint32_t index, uint32_t n_heads,
                                bool both_ways, const ModelSpec& spec, LayerSpec* out, Diag* diag) {
  if (layer.distance_bias() == kNoIndex) return Status::kOk;
  if (layer.distance_bias() >= spec.weights.size()) {
    return diag->Fail(Status::kBadBundle, "layer %u distance_bias: tensor %u of %zu", index,
                      layer.distance_bias(), spec.weights.size());
  }
  const Weight& w = spec.weights[layer.distance_bias()];
  if (w.is_vector || w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows ||
      w.cols != n_heads || (both_ways && w.rows % 2 == 0)) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u distance_bias: tensor %u is a %s matrix of [%u, %u], expected f32 "
                      "rows of %u heads%s",
                      index, layer.distance_bias(), DTypeName(w.dtype), w.rows, w.cols, n_heads,
                      both_ways ? ", an odd number" : "");
  }
  out->relative_position_bias = layer.distance_bias();
  return Status::kOk;
}

// Reads the cross-attention block, which lies between the two other blocks.
// Their keys and values share one group, so all have its shape.
Status ReadCross(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                 const ModelSpec& spec, Shapes* shapes, LayerSpec* out, Diag* diag) {
  const AttentionKind& a = kind.attention;
  const KvGroupSpec& group = spec.groups[spec.encoder.group];
  if (a.n_kv_heads != group.n_kv_heads || a.head_dim != group.head_dim) {
    return diag->Fail(Status::kUnsupported,
                      "layer %u: cross-attention with %u kv heads of %u elements, another layer's "
                      "has %u of %u",
                      index, a.n_kv_heads, a.head_dim, group.n_kv_heads, group.head_dim);
  }
  const uint64_t hidden = spec.hidden;
  const uint64_t q_width = uint64_t{a.n_heads} * a.head_dim;
  const uint64_t kv_width = uint64_t{a.n_kv_heads} * a.head_dim;
  ARN_TRY(ReadNorm("cross_norm", index, layer.cross_norm(), layer.cross_norm_bias(), kind.norm,
                   hidden, shapes, &out->cross_norm, &out->cross_norm_bias));
  ARN_TRY(shapes->Matrix("cross_q", index, layer.cross_q(), q_width, hidden));
  ARN_TRY(shapes->Matrix("cross_kv", index, layer.cross_kv(), 2 * kv_width, hidden));
  ARN_TRY(shapes->Matrix("cross_out", index, layer.cross_out(), hidden, q_width));
  out->cross_q = layer.cross_q();
  out->cross_kv = layer.cross_kv();
  out->cross_out = layer.cross_out();
  return Status::kOk;
}

}  // namespace

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
  ARN_TRY(ReadRelativePositionBias(layer, index, a.n_heads, false, *spec, out, diag));
  if (layer.cross_q() != kNoIndex) {
    if (kind.mixer.has_state() || kind.is_parallel || !spec->encoder.exists()) {
      return diag->Fail(
          Status::kBadBundle, "layer %u: cross-attention %s", index,
          spec->encoder.exists() ? "in a layer kind that cannot have it" : "without an encoder");
    }
    ARN_TRY(ReadCross(layer, index, kind, *spec, &shapes, out, diag));
    out->cross_layer = spec->groups[spec->encoder.group].n_layers++;
  }
  if (!out->shares_kv) out->group_layer = spec->groups[a.group].n_layers++;
  out->attention_out = layer.attention_out();
  return Status::kOk;
}

Status ReadEncoderLayer(const fbs::Layer& layer, uint32_t index, const ModelSpec& spec,
                        Span<const LayerKindSpec> kinds, LayerSpec* out, Diag* diag) {
  if (layer.kind() >= kinds.size()) {
    return diag->Fail(Status::kBadBundle, "encoder layer %u: kind %u of %zu", index, layer.kind(),
                      kinds.size());
  }
  const LayerKindSpec& kind = kinds[layer.kind()];
  const AttentionKind& a = kind.attention;
  const uint64_t hidden = spec.hidden;
  const uint64_t q_width = uint64_t{a.n_heads} * a.head_dim;
  const uint64_t kv_width = uint64_t{a.n_kv_heads} * a.head_dim;
  Shapes shapes(spec.weights, diag);
  ARN_TRY(shapes.Matrix("encoder qkv", index, layer.qkv(), q_width + 2 * kv_width, hidden));
  ARN_TRY(shapes.Matrix("encoder attention_out", index, layer.attention_out(), hidden, q_width));
  ARN_TRY(ReadFeedForward(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadNorms(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadRelativePositionBias(layer, index, a.n_heads, true, spec, out, diag));
  out->kind = layer.kind();
  out->qkv = layer.qkv();
  out->attention_out = layer.attention_out();
  return Status::kOk;
}

}  // namespace arn
