#include "runtime/model/read_layer.h"

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/mtp.h"
#include "runtime/model/read_streams.h"

namespace arn {
namespace {

// Finds the layer whose keys and values this layer uses.
Status PlaceKv(const fbs::Layer& layer, uint32_t index, const ModelSpec& spec, LayerSpec* out,
               Diag* diag) {
  const bool borrows = kHasMtp && spec.lender != nullptr;
  if (layer.kv_layer() == kNoIndex && !borrows) return Status::kOk;
  const ModelSpec& lender = borrows ? *spec.lender : spec;
  if (layer.kv_layer() >= (borrows ? lender.layers.size() : index) ||
      !spec.kinds[layer.kind()].has_attention() ||
      !lender.kinds[lender.layers[layer.kv_layer()].kind].has_attention() ||
      lender.layers[layer.kv_layer()].shares_kv) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: kv_layer is %u, expected %s layer with its own KV", index,
                      layer.kv_layer(), borrows ? "a decoder's" : "an earlier");
  }
  const LayerSpec& source = lender.layers[layer.kv_layer()];
  const uint32_t group = spec.kinds[layer.kind()].group;
  if (lender.kinds[source.kind].group != group) {
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
    ARN_TRY(shapes->Matrix("gate_up", index, layer.gate_up(), up_rows, hidden, &out->gate_up));
    ARN_TRY(shapes->Matrix("down", index, layer.down(), hidden, kind.ffn_dim, &out->down));
    return Status::kOk;
  }
  ARN_TRY(shapes->Matrix("router", index, layer.router(), kind.n_experts, hidden, &out->router));
  for (uint64_t e = 0; e < kind.n_experts; ++e) {
    const uint64_t first = layer.experts() + 2 * e;
    const auto gate_up = static_cast<uint32_t>(Min<uint64_t>(first, kNoIndex));
    const auto down = static_cast<uint32_t>(Min<uint64_t>(first + 1, kNoIndex));
    ARN_TRY(shapes->Matrix("expert gate_up", index, gate_up, up_rows, hidden));
    ARN_TRY(shapes->Matrix("expert down", index, down, hidden, kind.ffn_dim));
  }
  out->experts = layer.experts();
  if (layer.router_correction() != kNoIndex) {
    ARN_TRY(shapes->Vector("router_correction", index, layer.router_correction(), kind.n_experts,
                           &out->router_correction));
  }
  if (kind.shared_ffn_dim == 0) return Status::kOk;
  ARN_TRY(shapes->Matrix("shared_gate_up", index, layer.shared_gate_up(),
                         (kind.is_gated ? 2 : 1) * uint64_t{kind.shared_ffn_dim}, hidden,
                         &out->shared_gate_up));
  ARN_TRY(shapes->Matrix("shared_down", index, layer.shared_down(), hidden, kind.shared_ffn_dim,
                         &out->shared_down));
  if (layer.shared_gate() == kNoIndex) return Status::kOk;
  return shapes->Matrix("shared_gate", index, layer.shared_gate(), 1, hidden, &out->shared_gate);
}

Status ReadQkNorms(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                   bool shares_kv, Shapes* shapes, LayerSpec* out) {
  if (!kind.has_qk_norm) return Status::kOk;
  const auto size = [&](uint64_t n_heads) {
    return (kind.qk_norm_spans_heads ? n_heads : 1) * kind.head_dim;
  };
  ARN_TRY(shapes->Vector("q_norm", index, layer.q_norm(), size(kind.n_heads), &out->q_norm));
  if (shares_kv) return Status::kOk;
  return shapes->Vector("k_norm", index, layer.k_norm(), size(kind.n_kv_heads), &out->k_norm);
}

// Reads the norms around experts. REQUIRES: ReadNorms() has read the others.
Status ReadExpertNorms(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                       uint64_t hidden, Shapes* shapes, LayerSpec* out, Diag* diag) {
  struct Row {
    const char* name;
    uint32_t stored;
    WeightId* weight;
  };
  const Row rows[] = {{"router_norm", layer.router_norm(), &out->router_norm},
                      {"experts_norm", layer.experts_norm(), &out->experts_norm},
                      {"experts_post_norm", layer.experts_post_norm(), &out->experts_post_norm},
                      {"shared_post_norm", layer.shared_post_norm(), &out->shared_post_norm}};
  uint32_t n_found = 0;
  for (const Row& row : rows) {
    if (row.stored == kNoIndex) continue;
    ARN_TRY(shapes->Vector(row.name, index, row.stored, hidden, row.weight));
    ++n_found;
  }
  // The norms of x are written where ffn_norm was, which only the shared expert has read.
  const bool fits = n_found == 4 && kind.n_experts != 0 && kind.shared_ffn_dim != 0 &&
                    out->ffn_norm != kNoWeight && out->ffn_post_norm != kNoWeight;
  if (n_found == 0 || fits) return Status::kOk;
  return diag->Fail(Status::kUnsupported, "layer %u: %u of 4 norms around experts %s", index,
                    n_found, n_found == 4 ? "without a shared expert between two norms" : "");
}

// Reads the ranges of a layer's values. With norms before and behind both blocks, none of them is
// x itself. REQUIRES: ReadNorms().
Status ReadClamps(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                  Shapes* shapes, LayerSpec* out, Diag* diag) {
  if (layer.clamps() == kNoIndex) return Status::kOk;
  ARN_TRY(shapes->Vector("clamps", index, layer.clamps(), 2 * kClampPlaces, &out->clamps));
  if (kind.is_gated && kind.ffn_dim != 0 && out->attention_norm != kNoWeight &&
      out->attention_post_norm != kNoWeight && out->ffn_norm != kNoWeight &&
      out->ffn_post_norm != kNoWeight) {
    return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported,
                    "layer %u: clamps without norms before and behind both blocks, or without a "
                    "gate",
                    index);
}

// Reads the norms inside the blocks, and an activation's parameters. attention_width: of the input
// of attention_out.
Status ReadSubNorms(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                    uint64_t attention_width, Shapes* shapes, LayerSpec* out, Diag* diag) {
  if (layer.attention_sub_norm() != kNoIndex) {
    ARN_TRY(shapes->Vector("attention_sub_norm", index, layer.attention_sub_norm(), attention_width,
                           &out->attention_sub_norm));
  }
  const bool has_dense = kind.ffn_dim != 0 && kind.n_experts == 0;
  if (layer.ffn_sub_norm() != kNoIndex) {
    if (!has_dense) {
      return diag->Fail(Status::kBadBundle, "layer %u: ffn_sub_norm without a dense block", index);
    }
    ARN_TRY(shapes->Vector("ffn_sub_norm", index, layer.ffn_sub_norm(), kind.ffn_dim,
                           &out->ffn_sub_norm));
  }
  if (!has_dense || kind.activation != Activation::kXielu) return Status::kOk;
  return shapes->Vector("act_parameters", index, layer.act_parameters(), kXieluParameters,
                        &out->act_parameters);
}

// Reads the relative position bias, per head. both_ways: bidirectional, else only keys before the
// query.
Status ReadRelativePositionBias(const fbs::Layer& layer, uint32_t index, uint32_t n_heads,
                                bool both_ways, const ModelSpec& spec, LayerSpec* out, Diag* diag) {
  if (layer.relative_position_bias() == kNoIndex) return Status::kOk;
  if (layer.relative_position_bias() >= spec.weights.size()) {
    return diag->Fail(Status::kBadBundle, "layer %u relative_position_bias: tensor %u of %zu",
                      index, layer.relative_position_bias(), spec.weights.size());
  }
  const Weight& w = spec.weights[layer.relative_position_bias()];
  if (w.is_vector || w.dtype != DType::kF32 || w.layout.order != WeightOrder::kRows ||
      w.cols != n_heads || (both_ways && w.rows % 2 == 0)) {
    return diag->Fail(
        Status::kBadBundle,
        "layer %u relative_position_bias: tensor %u is a %s matrix of [%u, %u], expected f32 "
        "rows of %u heads%s",
        index, layer.relative_position_bias(), DTypeName(w.dtype), w.rows, w.cols, n_heads,
        both_ways ? ", an odd number" : "");
  }
  out->relative_position_bias = layer.relative_position_bias();
  return Status::kOk;
}

Status ReadLinearAttention(const fbs::Layer& layer, uint32_t index, const LayerKind& kind,
                           uint64_t hidden, Shapes* shapes, LayerSpec* out) {
  const uint32_t heads_rows = kind.has_delta_rule ? 2 : 3, width = kind.mixer_out_width();
  ARN_TRY(shapes->Matrix("linear_heads", index, layer.linear_heads(), heads_rows, kind.linear_heads,
                         &out->linear_heads));
  if (kind.is_hybrid) {
    ARN_TRY(shapes->Matrix("mixer_out", index, layer.mixer_out(), hidden, width, &out->mixer_out));
  }
  if (kind.mixer_norm_group == 0) return Status::kOk;
  const bool repeats = shapes->Cols(layer.mixer_norm()) == kind.mixer_norm_group;
  return shapes->Vector("mixer_norm", index, layer.mixer_norm(),
                        repeats ? kind.mixer_norm_group : width, &out->mixer_norm);
}

// Reads the tensors of a layer with a state. REQUIRES: kind.has_state().
Status ReadMixer(const fbs::Layer& layer, uint32_t index, const LayerKind& kind, uint64_t hidden,
                 Shapes* shapes, LayerSpec* out) {
  const uint32_t width = kind.conv_width();
  ARN_TRY(shapes->Matrix("mixer_in", index, layer.mixer_in(), kind.mixer_in_width(), hidden,
                         &out->mixer_in));
  ARN_TRY(shapes->Matrix("conv", index, layer.conv(), kind.conv_taps, width, &out->conv));
  if (layer.conv_bias() != kNoIndex) {
    ARN_TRY(shapes->Vector("conv_bias", index, layer.conv_bias(), width, &out->conv_bias));
  }
  if (kind.is_linear()) return ReadLinearAttention(layer, index, kind, hidden, shapes, out);
  if (kind.mixer != Mixer::kScan) return Status::kOk;
  const uint64_t rank = kind.scan_rank, states = kind.scan_states;
  ARN_TRY(shapes->Matrix("scan_low", index, layer.scan_low(), rank, width, &out->scan_low));
  ARN_TRY(shapes->Matrix("scan_steps", index, layer.scan_steps(), width, rank, &out->scan_steps));
  ARN_TRY(shapes->Matrix("scan_mix", index, layer.scan_mix(), 2 * states, width, &out->scan_mix));
  ARN_TRY(shapes->Matrix("scan_rates", index, layer.scan_rates(), states, width, &out->scan_rates));
  if (layer.scan_low_norm() != kNoIndex) {
    ARN_TRY(
        shapes->Vector("scan_low_norm", index, layer.scan_low_norm(), rank, &out->scan_low_norm));
    ARN_TRY(shapes->Vector("scan_mix_norm", index, layer.scan_mix_norm(), 2 * states,
                           &out->scan_mix_norm));
  }
  return shapes->Vector("scan_skip", index, layer.scan_skip(), width, &out->scan_skip);
}

// Reads the tensors of latent attention. REQUIRES: kind.is_latent().
Status ReadLatent(const fbs::Layer& layer, uint32_t index, const LayerKind& kind, uint64_t hidden,
                  Shapes* shapes, LayerSpec* out) {
  const uint32_t rank = kind.latent_query_rank, rotated = kind.head_dim - kind.latent_dim;
  if (rank != 0) {
    ARN_TRY(shapes->Matrix("query_low", index, layer.query_low(), rank, hidden, &out->query_low));
    ARN_TRY(shapes->Vector("query_low_norm", index, layer.query_low_norm(), rank,
                           &out->query_low_norm));
  }
  ARN_TRY(shapes->Matrix("qkv", index, layer.qkv(),
                         uint64_t{kind.n_heads} * (rotated + kind.latent_key_dim),
                         rank != 0 ? rank : hidden, &out->qkv));
  ARN_TRY(shapes->Matrix("latent_rotated", index, layer.latent_rotated(), rotated, hidden,
                         &out->latent_rotated));
  ARN_TRY(shapes->Matrix("latent", index, layer.latent(), kind.latent_dim, hidden, &out->latent));
  ARN_TRY(shapes->Vector("latent_norm", index, layer.latent_norm(), kind.latent_dim,
                         &out->latent_norm));
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    const auto at = [&](uint32_t first) {
      return static_cast<uint32_t>(Min<uint64_t>(uint64_t{first} + h, kNoIndex));
    };
    ARN_TRY(shapes->Matrix("latent_keys", index, at(layer.latent_keys()), kind.latent_dim,
                           kind.latent_key_dim));
    ARN_TRY(shapes->Matrix("latent_values", index, at(layer.latent_values()), kind.latent_value_dim,
                           kind.latent_dim));
  }
  out->latent_keys = layer.latent_keys();
  out->latent_values = layer.latent_values();
  return Status::kOk;
}

// Reads the cross-attention block, which lies between the two other blocks. The keys and values of
// all layers lie in one group, so they have one shape.
Status ReadCross(const fbs::Layer& layer, uint32_t index, const LayerKindSpec& kind,
                 const ModelSpec& spec, Shapes* shapes, LayerSpec* out, Diag* diag) {
  const KvGroupSpec& group = spec.groups[spec.encoder.group];
  if (kind.n_kv_heads != group.n_kv_heads || kind.head_dim != group.head_dim) {
    return diag->Fail(Status::kUnsupported,
                      "layer %u: cross-attention with %u kv heads of %u elements, another layer's "
                      "has %u of %u",
                      index, kind.n_kv_heads, kind.head_dim, group.n_kv_heads, group.head_dim);
  }
  const uint64_t hidden = spec.hidden;
  const uint64_t q_width = uint64_t{kind.n_heads} * kind.head_dim;
  const uint64_t kv_width = uint64_t{kind.n_kv_heads} * kind.head_dim;
  ARN_TRY(ReadNorm("cross_norm", index, layer.cross_norm(), layer.cross_norm_bias(), kind.norm,
                   hidden, shapes, &out->cross_norm, &out->cross_norm_bias));
  ARN_TRY(shapes->Matrix("cross_q", index, layer.cross_q(), q_width, hidden, &out->cross_q));
  ARN_TRY(shapes->Matrix("cross_kv", index, layer.cross_kv(), 2 * kv_width, spec.encoder.hidden,
                         &out->cross_kv));
  ARN_TRY(ReadNorm("cross_post_norm", index, layer.cross_post_norm(), kNoIndex, NormKind::kRms,
                   hidden, shapes, &out->cross_post_norm, nullptr));
  ARN_TRY(shapes->Matrix("cross_out", index, layer.cross_out(), hidden, q_width, &out->cross_out));
  return Status::kOk;
}

}  // namespace

Status ReadNorm(const char* place, uint32_t layer, uint32_t weight, uint32_t bias, NormKind kind,
                uint64_t size, Shapes* shapes, WeightId* out_weight, WeightId* out_bias) {
  if (weight == kNoIndex) return Status::kOk;
  ARN_TRY(shapes->Vector(place, layer, weight, size, out_weight));
  if (kind != NormKind::kLayer) return Status::kOk;
  return shapes->Vector(place, layer, bias, size, out_bias);
}

Status ReadLayer(const fbs::Layer& layer, uint32_t index, ModelSpec* spec, LayerSpec* out,
                 Diag* diag) {
  if (layer.kind() >= spec->kinds.size()) {
    return diag->Fail(Status::kBadBundle, "layer %u: kind %u of %zu", index, layer.kind(),
                      spec->kinds.size());
  }
  const LayerKindSpec& kind = spec->kinds[layer.kind()];
  const uint64_t hidden = spec->hidden;
  const uint64_t q_width = uint64_t{kind.n_heads} * kind.head_dim;
  ARN_TRY(PlaceKv(layer, index, *spec, out, diag));
  if (kind.is_latent() && (out->shares_kv || layer.cross_q() != kNoIndex)) {
    return diag->Fail(Status::kUnsupported,
                      "layer %u: latent attention with another layer's latents, or with "
                      "cross-attention",
                      index);
  }
  const uint64_t kv_width = out->shares_kv ? 0 : uint64_t{kind.n_kv_heads} * kind.head_dim;
  Shapes shapes(spec->weights, diag);
  if (kind.has_state()) ARN_TRY(ReadMixer(layer, index, kind, hidden, &shapes, out));
  if (kind.is_latent()) {
    ARN_TRY(ReadLatent(layer, index, kind, hidden, &shapes, out));
  } else if (kind.has_attention()) {
    ARN_TRY(shapes.Matrix("qkv", index, layer.qkv(), q_width + 2 * kv_width, hidden, &out->qkv));
  }
  if (kind.has_attention_gate) {
    ARN_TRY(shapes.Matrix("attention_gate", index, layer.attention_gate(),
                          kind.has_head_gates ? kind.n_heads : q_width, hidden,
                          &out->attention_gate));
  }
  const uint64_t head_width =
      kind.is_latent() ? uint64_t{kind.n_heads} * kind.latent_value_dim : q_width;
  const uint64_t out_width = kind.has_attention() ? head_width : kind.mixer_out_width();
  if (kind.mixer != Mixer::kNone) {
    ARN_TRY(shapes.Matrix("attention_out", index, layer.attention_out(), hidden, out_width,
                          &out->attention_out));
  }
  ARN_TRY(ReadFeedForward(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadNorms(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadExpertNorms(layer, index, kind, hidden, &shapes, out, diag));
  if (kind.is_parallel && (out->attention_norm == kNoWeight || out->ffn_norm == kNoWeight)) {
    return diag->Fail(Status::kBadBundle, "layer %u: parallel blocks without norms before them",
                      index);
  }
  if (kind.is_hybrid && (out->attention_norm == kNoWeight || kind.is_parallel)) {
    return diag->Fail(Status::kBadBundle, "layer %u: attention beside a mixer %s", index,
                      kind.is_parallel ? "in a parallel layer" : "without a norm before them");
  }
  const bool has_post_norm =
      out->attention_post_norm != kNoWeight || out->ffn_post_norm != kNoWeight;
  if (kind.norms_follow_sum &&
      (out->attention_norm == kNoWeight || (kind.ffn_dim != 0 && out->ffn_norm == kNoWeight) ||
       has_post_norm || kind.is_parallel || kind.is_hybrid || layer.cross_q() != kNoIndex)) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: norms_follow_sum without norms, or with parallel blocks, other "
                      "norms or cross-attention",
                      index);
  }
  // The norm after attention would overwrite what the other block reads, as the sum of experts that
  // a norm follows would.
  const bool overwrites = out->attention_post_norm != kNoWeight ||
                          (kind.n_experts != 0 && out->ffn_post_norm != kNoWeight);
  if (out->shares_norm(kind) && overwrites) {
    return diag->Fail(Status::kUnsupported,
                      "layer %u: parallel blocks with one norm before both and one after %s", index,
                      out->attention_post_norm != kNoWeight ? "attention" : "experts");
  }
  ARN_TRY(ReadQkNorms(layer, index, kind, out->shares_kv, &shapes, out));
  if (layer.v_norm() != kNoIndex && !kind.has_state() && !out->shares_kv) {
    ARN_TRY(shapes.Vector("v_norm", index, layer.v_norm(), kind.head_dim, &out->v_norm));
  }
  if (layer.clamps() != kNoIndex) {
    return diag->Fail(Status::kUnsupported, "layer %u: clamps in a decoder", index);
  }
  if (layer.output_scale() != kNoIndex) {
    ARN_TRY(shapes.Vector("output_scale", index, layer.output_scale(), 1, &out->output_scale));
  }
  if (spec->per_layer.width != 0) {
    const uint32_t width = spec->per_layer.width;
    ARN_TRY(shapes.Matrix("per_layer_gate", index, layer.per_layer_gate(), width, hidden,
                          &out->per_layer_gate));
    ARN_TRY(shapes.Matrix("per_layer_out", index, layer.per_layer_out(), hidden, width,
                          &out->per_layer_out));
    ARN_TRY(shapes.Vector("per_layer_norm", index, layer.per_layer_norm(), hidden,
                          &out->per_layer_norm));
  }
  ARN_TRY(ReadLayerStreams(layer, index, kind, *spec, &shapes, out, diag));
  out->kind = layer.kind();
  ARN_TRY(ReadSubNorms(layer, index, kind, out_width, &shapes, out, diag));
  if (layer.sinks() != kNoIndex) {
    ARN_TRY(shapes.Vector("sinks", index, layer.sinks(), kind.n_heads, &out->sinks));
  }
  ARN_TRY(ReadRelativePositionBias(layer, index, kind.n_heads, spec->is_bidirectional, *spec, out,
                                   diag));
  if (layer.cross_q() != kNoIndex) {
    if (kind.mixer != Mixer::kAttention || kind.is_parallel || !spec->encoder.exists()) {
      return diag->Fail(
          Status::kBadBundle, "layer %u: cross-attention %s", index,
          spec->encoder.exists() ? "in a layer kind that cannot have it" : "without an encoder");
    }
    ARN_TRY(ReadCross(layer, index, kind, *spec, &shapes, out, diag));
    out->cross_layer = spec->groups[spec->encoder.group].n_layers++;
  }
  if (kind.has_attention() && !out->shares_kv && !spec->is_bidirectional) {
    out->group_layer = spec->groups[kind.group].n_layers++;
  }
  if (kind.has_state()) out->state_layer = spec->groups[kind.state_group].n_layers++;
  return Status::kOk;
}

Status ReadEncoderLayer(const fbs::Layer& layer, uint32_t index, uint32_t hidden,
                        const ModelSpec& spec, Span<const LayerKindSpec> kinds, LayerSpec* out,
                        Diag* diag) {
  if (layer.kind() >= kinds.size()) {
    return diag->Fail(Status::kBadBundle, "encoder layer %u: kind %u of %zu", index, layer.kind(),
                      kinds.size());
  }
  const LayerKindSpec& kind = kinds[layer.kind()];
  const uint64_t q_width = uint64_t{kind.n_heads} * kind.head_dim;
  const uint64_t kv_width = uint64_t{kind.n_kv_heads} * kind.head_dim;
  Shapes shapes(spec.weights, diag);
  ARN_TRY(ReadQkNorms(layer, index, kind, /*shares_kv=*/false, &shapes, out));
  ARN_TRY(
      shapes.Matrix("encoder qkv", index, layer.qkv(), q_width + 2 * kv_width, hidden, &out->qkv));
  ARN_TRY(shapes.Matrix("encoder attention_out", index, layer.attention_out(), hidden, q_width,
                        &out->attention_out));
  ARN_TRY(ReadFeedForward(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadNorms(layer, index, kind, hidden, &shapes, out));
  ARN_TRY(ReadRelativePositionBias(layer, index, kind.n_heads, true, spec, out, diag));
  if (layer.v_norm() != kNoIndex) {
    ARN_TRY(shapes.Vector("v_norm", index, layer.v_norm(), kind.head_dim, &out->v_norm));
  }
  ARN_TRY(ReadClamps(layer, index, kind, &shapes, out, diag));
  out->kind = layer.kind();
  return Status::kOk;
}

}  // namespace arn
