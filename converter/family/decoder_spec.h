// Architecture of a model as the bundle stores it. After this no code branches on a family's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/contract/program.h"

namespace arn::convert {

struct RopeSpec {
  uint32_t rotary_dim = 0;
  float amplitude = 1.0f;
  std::vector<float> inv_freq;       // [rotary_dim / 2], scaling applied
  std::vector<float> long_inv_freq;  // for sessions with more than short_context tokens; empty:
                                     // none
  uint32_t short_context = 0;

  bool operator==(const RopeSpec&) const = default;
};

// Same values as fbs::Mixer.
enum class Mixer : uint8_t { kAttention = 0, kConv = 1, kScan = 2 };

// Replaces attention in a layer: the fields of fbs::LayerKind, and the biases.
struct MixerSpec {
  Mixer mixer = Mixer::kAttention;
  uint32_t width = 0;  // channels
  uint32_t taps = 0;   // inputs of the convolution
  uint32_t states = 0;
  uint32_t rank = 0;
  bool has_bias = false;  // of the first and last matrix
  bool has_conv_bias = false;

  bool has_state() const { return mixer != Mixer::kAttention; }
  // Returns the f32 elements of recurrent state per layer and sequence.
  uint64_t state_floats() const { return has_state() ? (taps - uint64_t{1} + states) * width : 0; }
  bool operator==(const MixerSpec&) const = default;
};

// Fields of fbs::LayerKind, and which tensors have a bias.
struct LayerKindSpec {
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;  // 0: full attention
  float attention_scale = 0.0f;
  float softcap = 0.0f;
  uint32_t rope = 0;     // kNoRope: none
  uint32_t ffn_dim = 0;  // 0: no feed-forward part
  NormKind norm = NormKind::kRms;
  float norm_epsilon = 0.0f;
  Activation activation = Activation::kSilu;
  bool is_gated = true;
  bool is_parallel = false;
  bool has_qk_norm = false;
  bool qk_norm_spans_heads = false;
  bool has_qkv_bias = false;
  bool has_attention_out_bias = false;
  bool has_mlp_bias = false;
  bool has_router_bias = false;
  bool has_k_bias = true;  // if q and v have one
  bool has_cross_attention = false;
  bool has_relative_position_bias = false;
  uint32_t n_experts = 0;  // 0: none; else ffn_dim is the width of each expert
  uint32_t n_experts_used = 0;
  bool norm_topk_prob = false;
  RouteScore route_score = RouteScore::kSoftmax;
  bool weighs_input = false;
  uint32_t shared_ffn_dim = 0;
  float activation_limit = 0.0f;
  float query_temperature = 0.0f;
  uint32_t query_temperature_step = 0;
  uint32_t chunk = 0;
  MixerSpec mixer;

  bool operator==(const LayerKindSpec&) const = default;
};

// Tensor names of a family without ".weight" and ".bias"; {} stands for the layer number. Null: the
// family has no such tensor.
struct TensorNames {
  const char* prefix;  // of all but the head; absent in checkpoints of the bare decoder
  const char* embedding;
  const char* positions = nullptr;
  const char* final_norm;
  const char* head;
  const char* attention_norm = nullptr;
  const char* qkv = nullptr;  // q, k and v fused in one tensor; else separate
  const char* q = nullptr;
  const char* k = nullptr;
  const char* v = nullptr;
  const char* q_norm = nullptr;
  const char* k_norm = nullptr;
  const char* attention_out = nullptr;
  const char* attention_post_norm = nullptr;
  const char* ffn_norm = nullptr;
  const char* gate_up = nullptr;  // gate and up fused in one tensor; else separate
  const char* gate = nullptr;
  const char* up = nullptr;
  const char* down = nullptr;
  const char* ffn_post_norm = nullptr;
  // Layers with experts; the second {} stands for the expert number.
  const char* router = nullptr;
  const char* expert_gate = nullptr;
  const char* expert_up = nullptr;
  const char* expert_down = nullptr;
  // Or all experts of a layer in one tensor [experts, inputs, outputs], named without ".weight".
  const char* stacked_gate_up = nullptr;
  const char* stacked_down = nullptr;
  const char* shared_gate = nullptr;  // shared expert, which every token passes through
  const char* shared_up = nullptr;
  const char* shared_down = nullptr;
  const char* sinks = nullptr;                   // without ".weight"
  const char* plain_up = nullptr;                // up of layers without a gate, if its name differs
  const char* relative_position_bias = nullptr;  // relative position bias [buckets, heads] of the
                                                 // first layer, shared by all
  // Layers with cross-attention.
  const char* cross_norm = nullptr;
  const char* cross_q = nullptr;
  const char* cross_k = nullptr;
  const char* cross_v = nullptr;
  const char* cross_out = nullptr;
  const char* conv1 = nullptr;  // convolutions over the encoder's features: [outputs, inputs, 3]
  const char* conv2 = nullptr;
  // Other names of the embedding in checkpoints.
  const char* embedding_copies[2] = {};
  // Layers with a mixer other than attention. scan_rates and scan_skip are complete names.
  const char* mixer_in = nullptr;
  const char* conv = nullptr;
  const char* scan_inputs = nullptr;  // projection to the time steps (dt), B and C
  const char* time_steps = nullptr;
  const char* scan_rates = nullptr;  // log(-A)
  const char* scan_skip = nullptr;
  const char* mixer_out = nullptr;
};

// Row order of a fused q, k and v tensor.
enum class QkvOrder : uint8_t {
  kBlocks,  // all of q, then all of k, then all of v
  kByHead,  // q, k and v of each head
};

// Relative position buckets (Raffel et al., 2020): the larger the distance, the wider the bucket.
struct RelativePositionBuckets {
  uint32_t n_buckets = 0;  // 0: no relative position bias
  uint32_t max_distance = 0;

  bool operator==(const RelativePositionBuckets&) const = default;
};

// Fields of fbs::Source.
struct EncoderSpec {
  uint32_t max_rows = 0;  // 0: no encoder
  uint32_t feature_width = 0;
  Activation conv_activation = Activation::kGelu;
  const TensorNames* names = nullptr;
  std::vector<LayerKindSpec> kinds;
  std::vector<uint32_t> layer_kinds;

  bool operator==(const EncoderSpec&) const = default;
};

struct DecoderSpec {
  std::string architecture;
  const TensorNames* names = nullptr;
  QkvOrder qkv_order = QkvOrder::kBlocks;
  bool is_transposed = false;       // layer matrices are stored [inputs, outputs]
  bool rotates_neighbours = false;  // RoPE pairs of q and k are (0, 1), (2, 3), ...
  bool gate_up_alternate = false;   // stacked experts: gate and up rows interleaved
  bool rates_are_logs = true;       // scan_rates are stored as log(-A), else as A
  float norm_offset = 0.0f;         // added to stored RMSNorm weights
  float residual_factor = 1.0f;     // scales what each block adds; folded into its last matrix
  uint32_t hidden = 0;
  uint32_t vocab = 0;
  uint32_t max_context = 0;
  float embedding_factor = 1.0f;
  NormKind final_norm_kind = NormKind::kRms;
  float final_norm_epsilon = 0.0f;
  float logits_factor = 1.0f;
  float logits_softcap = 0.0f;
  bool tied = false;
  std::vector<LayerKindSpec> kinds;
  std::vector<RopeSpec> ropes;
  std::vector<uint32_t> layer_kinds;  // per layer: index into kinds
  RelativePositionBuckets relative_position_buckets;
  EncoderSpec encoder;

  bool operator==(const DecoderSpec&) const = default;
};

}  // namespace arn::convert
