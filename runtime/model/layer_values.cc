#include "runtime/model/layer_values.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

LayerWidths WidthsOf(const LayerKindSpec& kind) {
  LayerWidths w;
  if (kind.has_state()) {
    w.mixed = kind.mixer_in_width();
    w.convolved = kind.conv_width();
    if (kind.is_linear()) w.mixer_out = kind.mixer_out_width();
    if (kind.mixer == Mixer::kScan) {
      w.low = kind.scan_rank;
      w.time_steps = kind.mixer_width;
      w.mix = 2 * kind.scan_states;
    }
  }
  if (kind.has_attention()) {
    w.attention = kind.n_heads * kind.head_dim;
    w.qkv = w.attention + (kind.is_latent() ? 1 : 2) * kind.n_kv_heads * kind.head_dim;
    if (kind.has_attention_gate)
      w.attention_gate = kind.has_head_gates ? kind.n_heads : w.attention;
  }
  if (kind.is_latent()) {
    w.latent = kind.latent_dim;
    w.latent_rotated = kind.head_dim - kind.latent_dim;
    w.query_low = kind.latent_query_rank;
    w.query = kind.n_heads * (w.latent_rotated + kind.latent_key_dim);
    w.head_key = kind.latent_key_dim;
    w.head_value = kind.latent_value_dim;
    w.head_outputs = kind.n_heads * kind.latent_value_dim;
  }
  if constexpr (kHasStreams) w.laurel_low = kind.laurel_rank;
  if (kind.n_experts != 0) {
    w.n_experts = kind.n_experts;
    w.topk = 2 * kind.n_experts_used;
    const uint32_t parts = kind.is_gated ? 2 : 1;
    w.expert_gate_up = parts * kind.ffn_dim;
    w.expert_activated = kind.is_gated ? kind.ffn_dim : 0;
    w.shared_gate_up = parts * kind.shared_ffn_dim;
    w.shared_activated = kind.is_gated ? kind.shared_ffn_dim : 0;
  } else {
    w.gate_up = (kind.is_gated ? 2 : 1) * kind.ffn_dim;
    w.activated = kind.is_gated ? kind.ffn_dim : 0;
  }
  return w;
}

}  // namespace

LayerWidths WidestOf(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers) {
  constexpr uint32_t LayerWidths::*kWidths[] = {
      &LayerWidths::qkv,
      &LayerWidths::attention,
      &LayerWidths::attention_gate,
      &LayerWidths::gate_up,
      &LayerWidths::activated,
      &LayerWidths::n_experts,
      &LayerWidths::topk,
      &LayerWidths::expert_gate_up,
      &LayerWidths::expert_activated,
      &LayerWidths::shared_gate_up,
      &LayerWidths::shared_activated,
      &LayerWidths::mixed,
      &LayerWidths::convolved,
      &LayerWidths::low,
      &LayerWidths::time_steps,
      &LayerWidths::mix,
      &LayerWidths::query_low,
      &LayerWidths::query,
      &LayerWidths::latent_rotated,
      &LayerWidths::latent,
      &LayerWidths::head_key,
      &LayerWidths::head_value,
      &LayerWidths::head_outputs,
      &LayerWidths::mixer_out,
      &LayerWidths::laurel_low,
  };
  static_assert(sizeof kWidths / sizeof kWidths[0] == sizeof(LayerWidths) / sizeof(uint32_t));
  LayerWidths widest;
  for (const LayerSpec& layer : layers) {
    const LayerWidths widths = WidthsOf(kinds[layer.kind]);
    for (uint32_t LayerWidths::*width : kWidths) {
      widest.*width = Max(widest.*width, widths.*width);
    }
  }
  return widest;
}

LayerValues NewLayerValues(const ModelSpec& spec, StepList* steps) {
  const LayerWidths w = WidestOf(spec.kinds, spec.layers);
  const auto add = [&](const char* name, uint32_t width) {
    return width == 0 ? kNoValue : steps->NewValue(name, width);
  };
  bool has_cross_attention = false, has_shared_gate = false, has_ffn_normed = false;
  bool has_experts_sum = false;
  for (const LayerSpec& layer : spec.layers) {
    has_experts_sum = has_experts_sum || layer.experts_post_norm != kNoWeight;
    has_cross_attention = has_cross_attention || layer.cross_q != kNoWeight;
    has_shared_gate = has_shared_gate || layer.shared_gate != kNoWeight;
    has_ffn_normed = has_ffn_normed || layer.ffn_post_norm != kNoWeight ||
                     !layer.shares_norm(spec.kinds[layer.kind]);
  }
  LayerValues v;
  v.x = add("x", spec.hidden);
  v.normed = add("normed", spec.hidden);
  v.qkv = add("qkv", w.qkv);
  v.attention = add("attention", w.attention);
  v.attention_gate = add("attention_gate", w.attention_gate);
  if (has_cross_attention) v.cross_q = add("cross_q", w.attention);
  v.mixer.mixed = add("mixed", w.mixed);
  v.mixer.convolved = add("convolved", w.convolved);
  v.mixer.low = add("scan_low", w.low);
  v.mixer.time_steps = add("scan_steps", w.time_steps);
  v.mixer.mix = add("scan_mix", w.mix);
  v.query_low = add("query_low", w.query_low);
  v.query = add("query", w.query);
  v.latent_rotated = add("latent_rotated", w.latent_rotated);
  v.latent = add("latent", w.latent);
  v.head_key = add("head_key", w.head_key);
  v.head_latent = add("head_latent", w.latent);
  v.head_value = add("head_value", w.head_value);
  v.head_outputs = add("head_outputs", w.head_outputs);
  const uint32_t per_layer = spec.per_layer.width;
  v.per_layer = add("per_layer", per_layer * static_cast<uint32_t>(spec.layers.size()));
  v.per_layer_projected =
      add("per_layer_projected", per_layer * static_cast<uint32_t>(spec.layers.size()));
  v.per_layer_gated = add("per_layer_gated", per_layer);
  v.per_layer_width = per_layer;
  if constexpr (kHasStreams) {
    v.laurel_low = add("laurel_low", w.laurel_low);
    const uint32_t n_streams = spec.streams.n;
    for (uint32_t i = 0; i < n_streams; ++i) {
      const ValueId stream = add("stream", spec.hidden);
      if (i == 0) v.streams = stream;
    }
    v.n_streams = n_streams;
    v.active_stream = spec.streams.active;
    v.stream_modes = add("stream_modes", n_streams);
    v.stream_predict = add("stream_predict", n_streams * n_streams);
    v.stream_correct = add("stream_correct", n_streams);
  }
  v.mixer.out = add("mixer_out", w.mixer_out);
  const bool uses_ffn_normed = (w.has_ffn() && has_ffn_normed) || w.laurel_low != 0;
  v.ffn_normed = add("ffn_normed", uses_ffn_normed ? spec.hidden : 0);
  v.gate_up = add("gate_up", w.gate_up);
  v.activated = add("activated", w.activated);
  if (w.n_experts == 0) return v;
  v.route_logits = add("route_logits", w.n_experts);
  v.topk = add("routes", w.topk);
  v.gathered = add("gathered", spec.hidden);
  v.expert_gate_up = add("expert_gate_up", w.expert_gate_up);
  v.expert_activated = add("expert_activated", w.expert_activated);
  v.expert_out = add("expert_out", spec.hidden);
  if (has_experts_sum) v.experts_sum = add("experts_sum", spec.hidden);
  v.shared_gate_up = add("shared_gate_up", w.shared_gate_up);
  v.shared_activated = add("shared_activated", w.shared_activated);
  if (has_shared_gate) v.shared_gate = add("shared_gate", 1);
  return v;
}

LayerValues ValuesOf(const LayerSpec& layer, const LayerKindSpec& kind, const LayerValues& widest,
                     StepList* steps) {
  const LayerWidths w = WidthsOf(kind);
  LayerValues v = widest;
  const auto narrow = [&](ValueId* value, uint32_t width) {
    if (width != 0) *value = steps->Narrowed(*value, width);
  };
  narrow(&v.qkv, layer.shares_kv ? w.attention : w.qkv);
  narrow(&v.attention, w.attention);
  narrow(&v.attention_gate, w.attention_gate);
  if (layer.cross_q != kNoWeight) narrow(&v.cross_q, w.attention);
  narrow(&v.query_low, w.query_low);
  narrow(&v.query, w.query);
  narrow(&v.latent_rotated, w.latent_rotated);
  narrow(&v.latent, w.latent);
  narrow(&v.head_key, w.head_key);
  narrow(&v.head_latent, w.latent);
  narrow(&v.head_value, w.head_value);
  narrow(&v.head_outputs, w.head_outputs);
  if constexpr (kHasStreams) narrow(&v.laurel_low, w.laurel_low);
  narrow(&v.mixer.mixed, w.mixed);
  narrow(&v.mixer.convolved, w.convolved);
  narrow(&v.mixer.low, w.low);
  narrow(&v.mixer.time_steps, w.time_steps);
  narrow(&v.mixer.mix, w.mix);
  narrow(&v.mixer.out, w.mixer_out);
  narrow(&v.gate_up, w.gate_up);
  narrow(&v.activated, w.activated);
  if (w.n_experts == 0) return v;
  narrow(&v.route_logits, w.n_experts);
  narrow(&v.topk, w.topk);
  narrow(&v.expert_gate_up, w.expert_gate_up);
  narrow(&v.expert_activated, w.expert_activated);
  narrow(&v.shared_gate_up, w.shared_gate_up);
  narrow(&v.shared_activated, w.shared_activated);
  return v;
}

}  // namespace arn
