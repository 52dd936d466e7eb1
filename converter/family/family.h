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
  kWindowed,       // layers with a window; all if sliding_window is null
  kOnlyWindowed,   // layers with a window; sliding_window must not be null
};

// Number of kv heads.
enum class KvHeadRule : uint8_t {
  kGiven,       // num_key_value_heads
  kAsHeads,     // as many as heads
  kMultiQuery,  // 1 with multi_query, which is true when absent; else as many as heads
  // new_decoder_architecture: num_kv_heads, with parallel blocks; else as kMultiQuery.
  kMultiQueryOrGrouped,
};

// Norms before parallel blocks.
enum class ParallelNorms : uint8_t {
  kTwo,
  kOne,               // both blocks read the same norm
  kOneUnlessGrouped,  // num_ln_in_parallel_attn, 2 by default with new_decoder_architecture
};

enum class MixerRule : uint8_t {
  kAttention,    // in all layers
  kScan,         // a convolution and a selective scan in all layers
  kConvByLayer,  // a gated short convolution in the layers that layer_types or full_attn_idxs
                 // selects
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

// Slopes of ALiBi (Press et al., 2021) if the number of heads is no power of two.
enum class Alibi : uint8_t {
  kNone,
  kLargestPower,  // those of the largest power of two below, then every second one of the next
  kNextPower,     // of the next power of two: every second one, then the others
};

enum class ScaleRule : uint8_t {
  kHeadDim,              // 1 / sqrt(head_dim)
  kQueryPreScalar,       // 1 / sqrt(query_pre_attn_scalar)
  kMultiplier,           // attention_multiplier, 1 when absent
  kMultiplierOrHeadDim,  // attention_multiplier, or as kHeadDim
  kSoftmaxScale,         // attn_config.softmax_scale, or as kHeadDim
  kOne,
};

// Keys of config.json that differ between families.
struct ConfigKeys {
  const char* hidden = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* ffn = "intermediate_size";  // null: always hidden times default_ffn_factor
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

// The only supported value of a key, as JSON. Keys that are absent have it.
struct RequiredValue {
  const char* key = nullptr;
  const char* value = nullptr;
};

// Another name of a key, which takes precedence.
struct KeyAlias {
  const char* alias = nullptr;
  const char* key = nullptr;
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
  bool has_head_bias = false;
  const char* bias_key = "attention_bias";
  const char* attention_out_bias_key = nullptr;  // false when absent; null: bias_key
  const char* mlp_bias_key = "mlp_bias";
  bool default_bias = false;

  // Fields of every layer that no config changes; activation_limit: the config's "silu" means
  // clamped SwiGLU. What a config says is read into the same fields (families.cc).
  LayerKind layer = {};
  double default_epsilon = 1e-6;
  float norm_offset = 0.0f;
  bool has_norm_weights = true;
  bool has_norm_biases = true;  // NormKind::kLayer
  QkNorm qk_norm = QkNorm::kNone;
  MixerRule mixer = MixerRule::kAttention;
  FfnRule ffn = FfnRule::kGiven;
  const char* activation = "silu";
  // The config has feed_forward_proj: "relu", "gated-gelu", ...
  bool has_feed_forward_proj = false;
  bool has_k_bias = true;
  KvHeadRule kv_heads = KvHeadRule::kGiven;
  bool has_relative_position_buckets = false;  // relative_attention_num_buckets, .._max_distance
  bool scales_tied_head = false;               // by 1 / sqrt(hidden): scale_decoder_outputs
  const EncoderFamily* encoder = nullptr;
  const char* parallel_key = nullptr;  // null: as in `layer`
  bool default_parallel = true;        // if parallel_key is absent
  ParallelNorms parallel_norms = ParallelNorms::kTwo;

  ExpertRule experts = ExpertRule::kNone;
  bool reads_num_experts = true;  // alias of num_local_experts
  const char* expert_ffn_key = "moe_intermediate_size";
  uint32_t default_experts = 0;
  uint32_t default_experts_used = 0;
  const char* norm_topk_prob_key = nullptr;  // key of norm_topk_prob, false if absent; null: on
                                             // with softmax scores
  bool has_shared_expert = false;            // same width as the routed experts
  Bias router_bias = Bias::kNever;
  bool gate_up_alternate = false;

  WindowRule window = WindowRule::kNone;
  uint32_t default_window = 0;
  uint32_t default_pattern = 0;  // 0: every layer
  uint32_t pattern_phase = 1;    // layer i has full attention if (i + this) % pattern is 0
  bool has_pattern_key = false;  // sliding_window_pattern takes precedence over default_pattern
  RopeRule rope = RopeRule::kEveryLayer;
  bool rotates_neighbours = false;
  double default_theta = 10000.0;
  double default_local_theta = 10000.0;  // RopeRule::kByWindow
  bool has_partial_rotary = false;
  bool has_rotary_keys = false;     // rotary_pct and rotary_emb_base, the older names
  uint32_t default_rotary_dim = 0;  // not 0: rotary_dim elements of a head are rotated
  double default_partial_rotary = 1.0;
  const char* default_rope = nullptr;  // JSON: rope_parameters if the config has none
  bool has_longrope_only = false;      // "yarn" too means longrope
  bool has_rope_alpha = false;         // type dynamic: alpha scales the base
  bool has_rope_temperature = false;   // llama_4_scaling_beta in rope_parameters
  // original_max_position_embeddings of the class; takes precedence over the rope object's.
  uint32_t default_original_context = 0;  // 0: the class has none

  ScaleRule scale = ScaleRule::kHeadDim;
  double default_query_scalar = 256;
  bool has_query_temperature = false;  // in layers without RoPE: attn_temperature_tuning
  bool caps_attention = false;         // attn_logit_softcapping
  bool caps_logits = false;            // final_logit_softcapping
  double default_attention_softcap = 0;
  double default_logits_softcap = 0;
  double default_logit_scale = 0;  // not 0: logit_scale multiplies the logits
  bool scales_embedding = false;   // by sqrt(hidden)
  bool has_multipliers = false;    // embedding_multiplier, residual_multiplier, logits_scaling
  bool multiplies_logits = false;  // by logits_scaling; else divides

  uint32_t default_head_dim = 0;    // 0: hidden / heads
  uint32_t default_kv_heads = 0;    // 0: as many as heads
  uint32_t default_ffn_factor = 0;  // times hidden; 0: the config must give the width
  uint32_t default_max_context = 2048;
  uint32_t position_offset = 0;  // rows of the position table before that of position 0
  bool default_tied = false;
  const char* tied_key = nullptr;             // takes precedence over tie_word_embeddings
  bool is_always_tied = false;                // whatever tie_word_embeddings says
  const char* older_architecture = nullptr;   // an older name in published configs
  const char* embedding_width_key = nullptr;  // must be the hidden size
  Alibi alibi = Alibi::kNone;
  const char* clip_key = nullptr;    // qkv_clip
  const char* nested_key = nullptr;  // an object whose keys are read as "nested_key.KEY"
  KeyAlias aliases[4] = {};
  RequiredValue required[10] = {};
  // Keys of published configs that neither the class nor the model of transformers reads. A
  // meaningful value gives a warning.
  const char* ignored_keys[16] = {};
};

Span<const Family> Families();

}  // namespace arn::convert
