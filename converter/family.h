// What a family of checkpoints says about itself: one row of the table in family_table.cc. Values
// are those of transformers' configuration classes (transformers/models/<model_type>/
// configuration_*.py); what a config states has precedence over a default.
#pragma once

#include <cstdint>

#include "converter/decoder_spec.h"
#include "platform/base/span.h"

namespace arn::convert {

enum class Bias : uint8_t {
  kNever,
  kAlways,
  kByKey,  // bias_key for attention, mlp_bias_key for the feed-forward part
};

enum class WindowRule : uint8_t {
  kNone,         // every layer attends to everything
  kEveryLayer,   // sliding_window holds for every layer
  kFromLayer,    // use_sliding_window: layers from max_window_layers on, unless layer_types says
  kPattern,      // all but each sliding_window_pattern-th layer, unless layer_types says
  kLayerTypes,   // as layer_types says, with use_sliding_window
  kLocalLayers,  // window_size in the layers that attention_layers (or attention_types) calls local
  kChunks,  // chunks of attention_chunk_size in the layers that rotate, unless layer_types says
};

enum class QkNorm : uint8_t {
  kNone,
  kEachHead,
  kAllHeads,        // one norm over all q heads, one over all k heads
  kPlainOfRotated,  // of each head, without weights, in the layers that rotate: use_qk_norm
};

enum class RopeRule : uint8_t {
  kEveryLayer,
  kNone,
  kByWindow,       // layers with a window have a base frequency of their own
  kNotEachFourth,  // no_rope_layers, or all but each no_rope_layer_interval-th
};

enum class MixerRule : uint8_t {
  kAttention,    // in all layers
  kScan,         // a convolution and a selective scan in all layers
  kConvByLayer,  // a gated short convolution where layer_types or full_attn_idxs say so
};

enum class FfnRule : uint8_t {
  kGiven,   // keys.ffn, or hidden times default_ffn_factor
  kNone,    // layers have none
  kBlocks,  // block_ff_dim or keys.ffn, adjusted by block_auto_adjust_ff_dim
};

enum class ScaleRule : uint8_t {
  kHeadDim,         // 1 / sqrt(head_dim)
  kQueryPreScalar,  // 1 / sqrt(query_pre_attn_scalar)
  kMultiplier,      // attention_multiplier
  kOne,
};

// The keys of config.json, where families differ.
struct ConfigKeys {
  const char* hidden = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* ffn = "intermediate_size";
  const char* context = "max_position_embeddings";
  const char* epsilon = "rms_norm_eps";
  const char* activation = "hidden_act";
  const char* head_dim = "head_dim";
  const char* layers_fallback = nullptr;  // of `layers`, when that is absent
};

// What a family's decoder attends to beside its own tokens: an encoder, as transformers calls it.
struct SourceFamily {
  const TensorNames* names;
  ConfigKeys keys = {};
  const char* rows_key = nullptr;  // null: default_rows
  uint32_t default_rows = 0;
  const char* feature_key = nullptr;  // width of features; null: the source is tokens
};

struct Family {
  const char* architecture;
  const char* model_type;  // tells the family when config.json has no architectures
  const TensorNames* names;
  ConfigKeys keys = {};

  QkvOrder qkv_order = QkvOrder::kBlocks;
  bool is_transposed = false;
  Bias qkv_bias = Bias::kNever;
  Bias attention_out_bias = Bias::kNever;
  Bias mlp_bias = Bias::kNever;
  const char* bias_key = "attention_bias";
  const char* mlp_bias_key = "mlp_bias";
  bool default_bias = false;

  NormKind norm = NormKind::kRms;
  double default_epsilon = 1e-6;
  float norm_offset = 0.0f;
  QkNorm qk_norm = QkNorm::kNone;
  MixerRule mixer = MixerRule::kAttention;
  FfnRule ffn = FfnRule::kGiven;
  const char* activation = "silu";
  bool is_gated = true;
  // What the config calls feed_forward_proj: "relu", "gated-gelu", ...
  bool has_feed_forward_proj = false;
  bool has_k_bias = true;
  bool has_distance_buckets = false;  // relative_attention_num_buckets, .._max_distance
  bool scales_tied_head = false;      // by 1 / sqrt(hidden): scale_decoder_outputs
  const SourceFamily* source = nullptr;
  const char* parallel_key = nullptr;  // true when absent
  bool clamps_swiglu = false;          // at swiglu_limit; what the config calls silu

  // Layers with experts: all, but for mlp_only_layers and by decoder_sparse_step; moe_layers, or
  // each interleave_moe_layer_step-th.
  bool has_experts = false;
  const char* expert_ffn_key = "moe_intermediate_size";
  uint32_t default_experts = 0;
  uint32_t default_experts_used = 0;
  const char* renormalise_key = nullptr;  // false when absent; null: always those of a softmax
  RouteScore route_score = RouteScore::kSoftmax;
  bool routes_weigh_input = false;
  bool has_shared_expert = false;  // as wide as the others
  Bias router_bias = Bias::kNever;
  bool gate_up_alternate = false;

  WindowRule window = WindowRule::kNone;
  uint32_t default_window = 0;
  uint32_t default_pattern = 0;
  RopeRule rope = RopeRule::kEveryLayer;
  bool rotates_neighbours = false;
  double default_theta = 10000.0;
  double default_local_theta = 10000.0;  // RopeRule::kByWindow
  bool has_partial_rotary = false;
  double default_partial_rotary = 1.0;

  ScaleRule scale = ScaleRule::kHeadDim;
  double default_query_scalar = 256;
  bool has_query_temperature = false;  // in layers that do not rotate: attn_temperature_tuning
  bool has_softcaps = false;
  double default_attention_softcap = 0;
  double default_logits_softcap = 0;
  bool scales_embedding = false;  // by sqrt(hidden)
  bool has_multipliers = false;   // embedding_multiplier, residual_multiplier, logits_scaling

  uint32_t default_head_dim = 0;    // 0: hidden / heads
  uint32_t default_kv_heads = 0;    // 0: as many as heads
  uint32_t default_ffn_factor = 0;  // of hidden; 0: the width must be given
  uint32_t default_max_context = 2048;
  bool default_tied = false;
  const char* tied_key = nullptr;  // has precedence over tie_word_embeddings
};

Span<const Family> Families();

}  // namespace arn::convert
