// Intermediate values of a layer, and their widths.
#pragma once

#include "kernels/contract/streams.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

struct MixerValues {
  ValueId mixed = kNoValue;  // LayerKind::mixer_in_width
  ValueId convolved = kNoValue;
  ValueId low = kNoValue;  // this and the following: Mixer::kScan only
  ValueId time_steps = kNoValue;
  ValueId mix = kNoValue;
  ValueId out = kNoValue;  // Mixer::kLinearAttention
};

// Values of a layer; kNoValue if no layer needs it.
struct LayerValues {
  ValueId x = kNoValue, normed = kNoValue, qkv = kNoValue, attention = kNoValue;
  ValueId attention_gate = kNoValue;
  ValueId ffn_normed = kNoValue, gate_up = kNoValue, activated = kNoValue;
  ValueId route_logits = kNoValue, topk = kNoValue, gathered = kNoValue;
  ValueId expert_gate_up = kNoValue, expert_activated = kNoValue, expert_out = kNoValue;
  ValueId experts_sum = kNoValue;  // of all experts, if a norm follows
  ValueId shared_gate_up = kNoValue, shared_activated = kNoValue, shared_gate = kNoValue;
  MixerValues mixer;
  ValueId cross_q = kNoValue;    // layers with cross-attention
  ValueId per_layer = kNoValue;  // of all layers, written before the first
  ValueId per_layer_projected = kNoValue, per_layer_gated = kNoValue;
  uint32_t per_layer_width = 0;
  // Latent attention.
  ValueId query_low = kNoValue, query = kNoValue;
  ValueId latent_rotated = kNoValue, latent = kNoValue;
  ValueId head_key = kNoValue, head_latent = kNoValue, head_value = kNoValue;
  ValueId head_outputs = kNoValue;
  ValueId laurel_low = kNoValue;
  // Residual streams: the first of n_streams values, and what the router says of them.
  ValueId streams = kNoValue;
  uint32_t n_streams = 0, active_stream = 0;
  ValueId stream_modes = kNoValue, stream_predict = kNoValue, stream_correct = kNoValue;

  bool has_streams() const { return kHasStreams && n_streams != 0; }
  bool IsStream(ValueId id) const {
    return has_streams() && id >= streams && id < streams + n_streams;
  }
  // Returns what the embedding writes.
  ValueId embedded() const { return has_streams() ? streams : x; }
};

// Widths of a layer type's values; 0: it has no such value.
struct LayerWidths {
  uint32_t qkv = 0, attention = 0, attention_gate = 0;
  uint32_t gate_up = 0, activated = 0;
  uint32_t n_experts = 0, topk = 0, expert_gate_up = 0, expert_activated = 0;
  uint32_t shared_gate_up = 0, shared_activated = 0;
  uint32_t mixed = 0, convolved = 0, low = 0, time_steps = 0, mix = 0, mixer_out = 0;
  uint32_t query_low = 0, query = 0, latent_rotated = 0, latent = 0;
  uint32_t head_key = 0, head_value = 0, head_outputs = 0;
  uint32_t laurel_low = 0;

  bool has_ffn() const { return gate_up != 0 || n_experts != 0; }
};

// Returns, for each value, the largest width of all layers.
LayerWidths WidestOf(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers);

// Adds the decoder's values, each as wide as its widest layer.
LayerValues NewLayerValues(const ModelSpec& spec, StepList* steps);

// Returns the values in the widths of one layer: views where it is narrower than the widest.
LayerValues ValuesOf(const LayerSpec& layer, const LayerKindSpec& kind, const LayerValues& widest,
                     StepList* steps);

}  // namespace arn
