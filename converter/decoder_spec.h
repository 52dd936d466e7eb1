// What a checkpoint's config says, in the terms of the bundle: no family name decides anything
// after this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arn::convert {

struct RopeSpec {
  uint32_t rotary_dim = 0;
  float amplitude = 1.0f;
  std::vector<float> inv_freq;  // [rotary_dim / 2], scaling applied

  bool operator==(const RopeSpec&) const = default;
};

// The fields of fbs::LayerKind, and where biases are expected among the tensors.
struct LayerKindSpec {
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;  // 0: full attention
  float attention_scale = 0.0f;
  uint32_t rope = 0;
  uint32_t ffn_dim = 0;
  float norm_epsilon = 0.0f;
  bool has_qk_norm = false;
  bool has_qkv_bias = false;
  bool has_attention_out_bias = false;
  bool has_mlp_bias = false;

  bool operator==(const LayerKindSpec&) const = default;
};

// The names of a family's tensors without ".weight" and ".bias"; {} stands for the layer's number.
struct TensorNames {
  const char* embedding;
  const char* final_norm;
  const char* head;
  const char* attention_norm;
  const char* q;
  const char* k;
  const char* v;
  const char* q_norm;
  const char* k_norm;
  const char* attention_out;
  const char* ffn_norm;
  const char* gate;
  const char* up;
  const char* down;
};

struct DecoderSpec {
  std::string architecture;
  const TensorNames* names = nullptr;
  uint32_t hidden = 0;
  uint32_t vocab = 0;
  uint32_t max_context = 0;
  float final_norm_epsilon = 0.0f;
  bool tied = false;
  std::vector<LayerKindSpec> kinds;
  std::vector<RopeSpec> ropes;
  std::vector<uint32_t> layer_kinds;  // per layer, an index into kinds

  bool operator==(const DecoderSpec&) const = default;
};

}  // namespace arn::convert
