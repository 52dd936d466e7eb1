// Describes a family of checkpoints: one row of the table in family_table.cc. Defaults are those of
// transformers' configuration classes (transformers/models/<model_type>/configuration_*.py); the
// config's values take precedence.
#pragma once

#include <cstdint>

#include "converter/family/decoder_spec.h"
#include "converter/family/rope.h"
#include "platform/base/span.h"

namespace arn::convert {

// For families without position embeddings: the context is limited only by session memory. The
// longest that the runtime accepts.
inline constexpr uint32_t kAnyContext = 1u << 24;

enum class Bias : uint8_t {
  kNever,
  kAlways,
  kByKey,  // bias_key for attention, mlp_bias_key for the feed-forward block
};

enum class WindowRule : uint8_t {
  kNone,         // every layer has full attention
  kEveryLayer,   // sliding_window applies to every layer
  kEveryIfUsed,  // sliding_window applies to every layer, with use_sliding_window
  kFromLayer,    // use_sliding_window: layers from max_window_layers on, unless layer_types
                 // overrides it
  kPattern,      // all except each default_pattern-th layer, unless layer_types overrides it
  kLayerTypes,   // as layer_types, with use_sliding_window
  kLocalLayers,  // window_size in layers that attention_layers (or attention_types) marks local
  kChunks,  // chunks of attention_chunk_size in layers with RoPE, unless layer_types overrides it
};

enum class QkNorm : uint8_t {
  kNone,
  kEachHead,
  kAllHeads,        // one norm over all q heads, one over all k heads
  kPlainOfRotated,  // per head, without weights, in layers with RoPE: use_qk_norm
};

enum class RopeRule : uint8_t {
  kEveryLayer,
  kNone,
  kByWindow,       // layers with a window have their own base frequency
  kNotEachFourth,  // no_rope_layers, or all except each no_rope_layer_interval-th
};

enum class MixerRule : uint8_t {
  kAttention,        // in all layers
  kScan,             // a convolution and a selective scan in all layers
  kConvByLayer,      // a gated short convolution in the layers that layer_types or full_attn_idxs
                     // selects
  kLinearAttention,  // in the layers that LinearAttentionFamily selects
};

// Selects the layers with linear attention.
enum class LinearLayers : uint8_t {
  kAll,
  kInterval,    // layer_types, or all except each full_attention_interval-th
  kMambaTypes,  // "mamba" in layer_types or layers_block_type; all if both are absent
  kIndices,     // all except attn_layer_indices
  kBeside,      // all, beside their attention
  kBlocks,      // "mamba" in layers_block_type, or M in hybrid_override_pattern; each layer is one
                // block: linear attention, attention or a feed-forward block
};

// The norm beside the output gate of linear attention.
enum class GatedNorm : uint8_t {
  kEachHead,  // of each head, before the gate; the heads share its weight
  kAllHeads,  // of all heads together, after the gate
  kGroups,    // of the heads that share keys, after the gate
  kByKeys,    // of the heads that share keys, if mamba_rms_norm, before the gate if
              // mamba_norm_before_gate
};

// Linear attention: keys of config.json, and the defaults of the configuration class.
struct LinearAttentionFamily {
  struct Size {
    const char* key;
    uint32_t fallback = 0;  // 0: value_dim is "auto", the width divided by the heads
  };
  LinearLayers layers;
  GatedNorm norm;
  bool has_delta_rule = false;  // hidden_act must be silu
  Size heads, key_heads, key_dim, value_dim;
  Size taps;
  Size width = {};                       // of all heads, before expand_key
  const char* expand_key = nullptr;      // times hidden: the width, which the heads must have
  const char* conv_bias_key = nullptr;   // true if absent; null: no bias
  const char* in_bias_key = nullptr;     // of the first and the last matrix; null: no biases
  const char* out_bias_key = nullptr;    // of the last matrix, if that has a key of its own
  const char* activation_key = nullptr;  // of the convolution, which must be silu; null: hidden_act
  // Time steps are at least this, as in transformers' own kernel. Null: time_step_limit's.
  const char* least_step_key = nullptr;
};

enum class FfnRule : uint8_t {
  kGiven,   // keys.ffn, or hidden times default_ffn_factor
  kNone,    // no feed-forward block
  kBlocks,  // block_ff_dim or keys.ffn, adjusted by block_auto_adjust_ff_dim
};

// Selects the layers with experts.
enum class ExpertRule : uint8_t {
  kNone,
  kEveryLayer,
  kSparseStep,  // each decoder_sparse_step-th, except mlp_only_layers
  kListed,      // moe_layers, or each interleave_moe_layer_step-th
};

enum class ScaleRule : uint8_t {
  kHeadDim,         // 1 / sqrt(head_dim)
  kQueryPreScalar,  // 1 / sqrt(query_pre_attn_scalar)
  kMultiplier,      // attention_multiplier
  kOne,
};

// Keys of config.json that differ between families.
struct ConfigKeys {
  const char* hidden = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* ffn = "intermediate_size";
  const char* context = "max_position_embeddings";
  const char* epsilon = "rms_norm_eps";   // null: always the family's default
  const char* activation = "hidden_act";  // null: always the family's default
  const char* head_dim = "head_dim";      // null: always hidden / heads
  const char* layers_fallback = nullptr;  // used if `layers` is absent
};

// Defaults of the configuration class, for nested configs, which omit values equal to them.
struct ClassSizes {
  uint32_t vocab = 0;  // 0, here and below: the nested config must give it
  uint32_t hidden = 0;
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t ffn = 0;
};

// Encoder of an encoder-decoder family.
struct EncoderFamily {
  const TensorNames* names;
  ConfigKeys keys = {};
  const char* rows_key = nullptr;  // null: default_rows
  uint32_t default_rows = 0;
  const char* feature_key = nullptr;  // width of the input features; null: the encoder takes tokens
};

struct Family {
  const char* architecture;
  const char* model_type;  // identifies the family if config.json has no architectures
  const TensorNames* names;
  ConfigKeys keys = {};
  ClassSizes sizes = {};

  QkvOrder qkv_order = QkvOrder::kBlocks;
  bool is_transposed = false;
  Bias qkv_bias = Bias::kNever;
  Bias attention_out_bias = Bias::kNever;
  Bias mlp_bias = Bias::kNever;
  const char* bias_key = "attention_bias";
  const char* mlp_bias_key = "mlp_bias";
  bool default_bias = false;

  // Fields of every layer that no config changes; activation_limit: the config's "silu" means
  // clamped SwiGLU. What a config says is read into the same fields (families.cc).
  LayerKind layer = {};
  double default_epsilon = 1e-6;
  float norm_offset = 0.0f;
  QkNorm qk_norm = QkNorm::kNone;
  MixerRule mixer = MixerRule::kAttention;
  const LinearAttentionFamily* linear = nullptr;  // MixerRule::kLinearAttention
  FfnRule ffn = FfnRule::kGiven;
  const char* activation = "silu";
  // The config has feed_forward_proj: "relu", "gated-gelu", ...
  bool has_feed_forward_proj = false;
  bool has_k_bias = true;
  bool has_kv_heads = true;                    // num_key_value_heads may be fewer than heads
  bool has_relative_position_buckets = false;  // relative_attention_num_buckets, .._max_distance
  bool scales_tied_head = false;               // by 1 / sqrt(hidden): scale_decoder_outputs
  const EncoderFamily* encoder = nullptr;
  const char* parallel_key = nullptr;  // true when absent

  ExpertRule experts = ExpertRule::kNone;
  bool reads_num_experts = true;  // alias of num_local_experts
  const char* expert_ffn_key = "moe_intermediate_size";
  const char* experts_refused_by = nullptr;  // key that must be 0
  uint32_t default_experts = 0;
  uint32_t default_experts_used = 0;
  const char* norm_topk_prob_key = nullptr;  // key of norm_topk_prob, false if absent; null: on
                                             // with softmax scores
  bool has_shared_expert = false;            // same width as the routed experts
  Bias router_bias = Bias::kNever;
  bool gate_up_alternate = false;

  WindowRule window = WindowRule::kNone;
  uint32_t default_window = 0;
  uint32_t default_pattern = 0;
  bool has_pattern_key = false;  // sliding_window_pattern takes precedence over default_pattern
  RopeRule rope = RopeRule::kEveryLayer;
  bool rotates_neighbours = false;
  double default_theta = 10000.0;
  double default_local_theta = 10000.0;  // RopeRule::kByWindow
  bool has_partial_rotary = false;
  bool has_rotary_keys = false;  // rotary_pct and rotary_emb_base, the older names
  double default_partial_rotary = 1.0;
  bool ignores_partial_rotary = false;  // rotates whole heads whatever the keys say: type default
  const YarnDefaults* default_yarn = nullptr;  // if the config has no scaling
  bool has_longrope_only = false;              // "yarn" too means longrope
  bool has_mrope = false;  // mrope_section and mrope_interleaved have no effect on text
  // original_max_position_embeddings of the class; takes precedence over the rope object's.
  uint32_t default_original_context = 0;  // 0: the class has none

  ScaleRule scale = ScaleRule::kHeadDim;
  double default_query_scalar = 256;
  bool has_query_temperature = false;  // in layers without RoPE: attn_temperature_tuning
  bool caps_attention = false;         // attn_logit_softcapping
  bool caps_logits = false;            // final_logit_softcapping
  double default_attention_softcap = 0;
  double default_logits_softcap = 0;
  bool scales_embedding = false;       // by sqrt(hidden)
  bool has_multipliers = false;        // embedding_multiplier, residual_multiplier, logits_scaling
  bool has_block_multipliers = false;  // those of MatrixFactors
  bool ropes_by_key = false;           // RoPE only if position_embedding_type is "rope"

  uint32_t default_head_dim = 0;    // 0: hidden / heads
  uint32_t default_kv_heads = 0;    // 0: as many as heads
  uint32_t default_ffn_factor = 0;  // times hidden; 0: the config must give the width
  uint32_t default_max_context = 2048;
  bool default_tied = false;
  const char* tied_key = nullptr;            // takes precedence over tie_word_embeddings
  const char* older_architecture = nullptr;  // an older name in published configs
  // Keys of published configs that neither the class nor the model of transformers reads. A
  // meaningful value gives a warning.
  const char* ignored_keys[16] = {};

  // False if no layer of any checkpoint has attention.
  bool has_attention() const {
    return mixer != MixerRule::kScan && (linear == nullptr || linear->layers != LinearLayers::kAll);
  }
};

Span<const Family> Families();

}  // namespace arn::convert
