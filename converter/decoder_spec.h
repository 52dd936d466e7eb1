// What a checkpoint's config says, in the terms of the bundle: no family name decides anything
// after this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/program.h"

namespace arn::convert {

struct RopeSpec {
  uint32_t rotary_dim = 0;
  float amplitude = 1.0f;
  std::vector<float> inv_freq;       // [rotary_dim / 2], scaling applied
  std::vector<float> long_inv_freq;  // of sessions with more than short_context tokens; empty: none
  uint32_t short_context = 0;

  bool operator==(const RopeSpec&) const = default;
};

// As fbs::Mixer.
enum class Mixer : uint8_t { kAttention = 0, kConv = 1, kScan = 2 };

// What a layer has instead of attention; the fields of fbs::LayerKind, and its biases.
struct MixerSpec {
  Mixer mixer = Mixer::kAttention;
  uint32_t width = 0;  // channels
  uint32_t taps = 0;   // inputs of the convolution
  uint32_t states = 0;
  uint32_t rank = 0;
  bool has_bias = false;  // of the first and the last matrix
  bool has_conv_bias = false;

  bool has_state() const { return mixer != Mixer::kAttention; }
  // f32 elements that a layer keeps of a sequence.
  uint64_t state_floats() const { return has_state() ? (taps - uint64_t{1} + states) * width : 0; }
  bool operator==(const MixerSpec&) const = default;
};

// The fields of fbs::LayerKind, and where biases are expected among the tensors.
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
  bool has_k_bias = true;  // when q and v have one
  bool attends_to_source = false;
  bool has_distance_bias = false;
  uint32_t n_experts = 0;  // 0: none; else ffn_dim is that of each
  uint32_t n_experts_used = 0;
  bool renormalises_routes = false;
  RouteScore route_score = RouteScore::kSoftmax;
  bool routes_weigh_input = false;
  uint32_t shared_ffn_dim = 0;
  float activation_limit = 0.0f;
  float query_temperature = 0.0f;
  uint32_t query_temperature_step = 0;
  uint32_t chunk = 0;
  MixerSpec mixer;

  bool operator==(const LayerKindSpec&) const = default;
};

// The names of a family's tensors without ".weight" and ".bias"; {} stands for the layer's number.
// Null: the family has no such tensor.
struct TensorNames {
  const char* prefix;  // of all but the head; checkpoints of the bare decoder leave it out
  const char* embedding;
  const char* positions = nullptr;
  const char* final_norm;
  const char* head;
  const char* attention_norm = nullptr;
  const char* qkv = nullptr;  // q, k and v in one tensor; else each in its own
  const char* q = nullptr;
  const char* k = nullptr;
  const char* v = nullptr;
  const char* q_norm = nullptr;
  const char* k_norm = nullptr;
  const char* attention_out = nullptr;
  const char* attention_post_norm = nullptr;
  const char* ffn_norm = nullptr;
  const char* gate_up = nullptr;  // gate and up in one tensor; else each in its own
  const char* gate = nullptr;
  const char* up = nullptr;
  const char* down = nullptr;
  const char* ffn_post_norm = nullptr;
  // Of layers with experts; the second {} stands for the expert's number.
  const char* router = nullptr;
  const char* expert_gate = nullptr;
  const char* expert_up = nullptr;
  const char* expert_down = nullptr;
  // Or all experts of a layer in one tensor [experts, inputs, outputs], named without ".weight".
  const char* stacked_gate_up = nullptr;
  const char* stacked_down = nullptr;
  const char* shared_gate = nullptr;  // of what all tokens go through
  const char* shared_up = nullptr;
  const char* shared_down = nullptr;
  const char* sinks = nullptr;          // without ".weight"
  const char* plain_up = nullptr;       // up of layers without a gate, when it has another name
  const char* distance_bias = nullptr;  // [buckets, heads], of the first layer, for all
  // Of layers that attend to a source.
  const char* cross_norm = nullptr;
  const char* cross_q = nullptr;
  const char* cross_k = nullptr;
  const char* cross_v = nullptr;
  const char* cross_out = nullptr;
  const char* conv1 = nullptr;  // of a source's features: [outputs, inputs, 3]
  const char* conv2 = nullptr;
  // Further names under which checkpoints have the embedding.
  const char* embedding_copies[2] = {};
  // Of layers with another mixer than attention. scan_rates and scan_skip are whole names.
  const char* mixer_in = nullptr;
  const char* conv = nullptr;
  const char* scan_inputs = nullptr;  // what time steps, B and C are made of
  const char* scan_steps = nullptr;
  const char* scan_rates = nullptr;  // log(-A)
  const char* scan_skip = nullptr;
  const char* mixer_out = nullptr;
};

// How the rows of a tensor of q, k and v follow each other.
enum class QkvOrder : uint8_t {
  kBlocks,  // all of q, all of k, all of v
  kByHead,  // q, k and v of each head
};

// Raffel et al., 2020: distances fall into buckets, wider ones the farther they are.
struct DistanceBuckets {
  uint32_t n_buckets = 0;  // 0: attention has no bias by distance
  uint32_t max_distance = 0;

  bool operator==(const DistanceBuckets&) const = default;
};

// The fields of fbs::Source.
struct SourceSpec {
  uint32_t max_rows = 0;  // 0: there is none
  uint32_t feature_width = 0;
  Activation conv_activation = Activation::kGelu;
  const TensorNames* names = nullptr;
  std::vector<LayerKindSpec> kinds;
  std::vector<uint32_t> layer_kinds;

  bool operator==(const SourceSpec&) const = default;
};

struct DecoderSpec {
  std::string architecture;
  const TensorNames* names = nullptr;
  QkvOrder qkv_order = QkvOrder::kBlocks;
  bool is_transposed = false;       // matrices of layers are stored [inputs, outputs]
  bool rotates_neighbours = false;  // rotated pairs of q and k are (0, 1), (2, 3), ...
  bool gate_up_alternate = false;   // stacked: gate and up row by row in turn
  float norm_offset = 0.0f;         // what is missing from stored RMSNorm weights
  float residual_factor = 1.0f;     // of what each block adds; goes into its last matrix
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
  std::vector<uint32_t> layer_kinds;  // per layer, an index into kinds
  DistanceBuckets distance_buckets;
  SourceSpec source;

  bool operator==(const DecoderSpec&) const = default;
};

}  // namespace arn::convert
