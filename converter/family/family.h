// Describes a family of checkpoints: one row of the table in family_table.cc. Defaults are those of
// transformers' configuration classes (transformers/models/<model_type>/configuration_*.py); the
// config's values take precedence.
#pragma once

#include <cstdint>
#include <optional>

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
  kLaterLayers,  // layers from max_window_layers on, unless layer_types overrides it
  kPattern,      // all except each default_pattern-th layer, unless layer_types overrides it
  kLayerTypes,   // as layer_types, with use_sliding_window
  kNamedLayers,  // as layer_types; none if it is absent
  kLocalLayers,  // window_size in layers that attention_layers (or attention_types) marks local
  kChunks,  // chunks of attention_chunk_size in layers with RoPE, unless layer_types overrides it
};

enum class QkNorm : uint8_t {
  kNone,
  kEachHead,
  kEachHeadIfUsed,  // use_qk_norm, false if absent
  kAllHeads,        // one norm over all q heads, one over all k heads
  kPlainOfRotated,  // per head, without weights, in layers with RoPE: use_qk_norm
};

enum class RopeRule : uint8_t {
  kEveryLayer,
  kNone,
  kByWindow,       // layers with a window have their own base frequency
  kByType,         // rope_parameters has an object for layers with a window and one for the others
  kNotEachFourth,  // no_rope_layers, or all except each no_rope_layer_interval-th
  kWindowed,       // layers with a window; all if sliding_window is null
  kOnlyWindowed,   // layers with a window; sliding_window must not be null
  // As kOnlyWindowed, and with prefix_pattern_key 1 also layers without experts.
  kWindowedOrDense,
  kByTheta,  // all, or none if rope_theta is null
};

// Number of kv heads.
enum class KvHeadRule : uint8_t {
  kGiven,        // keys.kv_heads
  kAsHeads,      // as many as heads
  kMustBeHeads,  // as many as heads, which keys.kv_heads, null or absent, must be
  kMultiQuery,   // 1 with multi_query, which is true when absent; else as many as heads
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
  kAttention,        // in all layers
  kScan,             // a convolution and a selective scan in the layers that ScanFamily selects
  kConvByLayer,      // a gated short convolution in the layers that layer_types or full_attn_idxs
                     // selects
  kLinearAttention,  // in the layers that LinearAttentionFamily selects
};

// A convolution and a selective scan: keys of config.json.
struct ScanFamily {
  const char* expand = "expand";            // times hidden: the width
  const char* width = "intermediate_size";  // takes precedence; null: none
  const char* taps = "conv_kernel";
  const char* states = "state_size";
  const char* rank = "time_step_rank";
  const char* bias = "use_bias";  // of the first and the last matrix
  const char* conv_bias = "use_conv_bias";
  // Norms of time steps, B and C, with the number of this key.
  const char* norm_epsilon = nullptr;  // null: no norms
  double default_norm_epsilon = 1e-6;
  // Attention in layer i if i % attn_layer_period is attn_layer_offset.
  bool has_attention_period = false;
};

// Selects the layers with linear attention.
enum class LinearLayers : uint8_t {
  kAll,
  kInterval,    // layer_types, or all except each full_attention_interval-th
  kEachFourth,  // layer_types, or all except each fourth; of fewer all but the last
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
  // Null or absent: heads are those of attention, key_dim is 3/4 hidden / key_heads, value_dim
  // twice key_dim.
  bool derives_sizes = false;
  const char* doubles_betas_key = nullptr;  // true if absent; null: off
  float norm_epsilon = 0.0f;                // of the norm; 0: that of the other norms
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
  kGiven,    // keys.ffn, or hidden times default_ffn_factor
  kNone,     // no feed-forward block
  kBlocks,   // block_ff_dim or keys.ffn, adjusted by block_auto_adjust_ff_dim
  kByLayer,  // keys.ffn: a width, or a list of the layers'
};

// Selects the layers with experts.
enum class ExpertRule : uint8_t {
  kNone,
  kEveryLayer,
  kSparseStep,  // each decoder_sparse_step-th, except mlp_only_layers
  kListed,      // moe_layers, or each interleave_moe_layer_step-th
  kByType,      // those that mlp_layer_types calls sparse; as kAfterDense if it is absent
  kAfterDense,  // all but the first dense_layers_key, or default_dense_layers
  kBlocks,     // "moe" in layers_block_type, or E in hybrid_override_pattern: LinearLayers::kBlocks
  kPeriod,     // i % expert_layer_period is expert_layer_offset, and there are two or more
  kIfEnabled,  // all, with enable_moe_block
  kInterval,   // each moe_layer_interval-th of moe_layer_start_index to moe_layer_end_index
};

// Width of the shared expert.
enum class SharedExpert : uint8_t {
  kNone,
  kOne,          // as a routed expert
  kCount,        // shared_expert_key times a routed expert
  kWidth,        // shared_expert_key
  kFeedForward,  // as the feed-forward blocks of layers without experts
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
  const char* ffn_fallback = nullptr;     // used if `ffn` is absent
  const char* context = "max_position_embeddings";
  const char* epsilon = "rms_norm_eps";   // null: always the family's default
  const char* activation = "hidden_act";  // null: always the family's default
  const char* head_dim = "head_dim";      // null: always hidden / heads
  const char* layers_fallback = nullptr;  // used if `layers` is absent
  const char* kv_heads = "num_key_value_heads";
};

// Defaults of the configuration class, for nested configs, which omit values equal to them.
struct ClassSizes {
  uint32_t vocab = 0;  // 0, here and below: the nested config must give it
  uint32_t hidden = 0;
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t ffn = 0;
};

// Pairs of the rotated part of a head with latent attention.
enum class LatentPairs : uint8_t {
  kByKey,  // neighbours with rope_interleave, which is true when absent; else halves
  kNeighbours,
  kHalves,
};

// Latent attention: defaults of kv_lora_rank, q_lora_rank (null: queries have no low rank),
// qk_nope_head_dim, qk_rope_head_dim and v_head_dim (0: hidden / heads).
struct LatentFamily {
  uint32_t kv_rank, query_rank, key_dim, rotary_dim, value_dim;
  LatentPairs pairs = LatentPairs::kByKey;
  bool scales_by_rope = true;  // by mscale_all_dim of the rope's scaling
  // head_dim is that of a query, and partial_rotary_factor the rotated part of it.
  bool has_whole_heads = false;
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

struct Family;

// A convolution over an encoder's features.
struct Convolution {
  const char* name;
  uint32_t taps, stride = 1, padding = 0;
  uint32_t width = 1;  // channels, times hidden
  bool has_bias = true;
  Activation activation = Activation::kGelu;
  const char* norm = nullptr;  // ConvolutionSpec
  float norm_epsilon = 0.0f;
};

// Encoder of an encoder-decoder family.
struct EncoderFamily {
  const TensorNames* names;
  // Its keys lie in an object of their own, config_key, and are those of this family. Its windows
  // reach both ways, as far as the key says. Null: keys of the same object, and no RoPE.
  const Family* family = nullptr;
  const char* config_key = nullptr;
  ConfigKeys keys = {};
  const char* rows_key = nullptr;  // null: default_rows
  uint32_t default_rows = 0;
  // The encoder takes features, of which convolutions make rows; none: tokens.
  Span<const Convolution> convolutions = {};
  const char* feature_key = nullptr;  // width of the features; null: they are samples of audio
  // Layers of the same keys whose default differs from the decoder's.
  const char* activation = nullptr;  // null: the decoder's
  bool is_plain = false;             // no gate, whatever the decoder has
  bool rotates = false;              // by the decoder's RoPE
};

// Head that scores texts: dense (if any), activation, norm, out.
struct ScoreHead {
  const char* out;  // [num_labels, hidden]
  bool has_out_bias = true;
  const char* dense = nullptr;  // [hidden, hidden]
  bool has_dense_bias = true;
  const char* dense_bias_key = nullptr;  // false if absent; null: has_dense_bias
  Activation activation = Activation::kTanh;
  const char* activation_key = nullptr;  // null: always `activation`
  const char* norm = nullptr;
  PoolKind mode = PoolKind::kFirst;
  const char* mode_key = nullptr;  // "cls" or "mean"; null: always `mode`
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
  bool has_last_out_bias = false;  // of attention's output, in the last layer alone
  bool has_head_bias = false;
  const char* bias_key = "attention_bias";
  const char* attention_out_bias_key = nullptr;  // false when absent; null: bias_key
  const char* mlp_bias_key = "mlp_bias";
  const char* head_bias_key = nullptr;  // default_head_bias if absent; null: no bias
  bool default_head_bias = false;
  const char* head_dense_bias_key = nullptr;  // false if absent
  const char* head_activation_key = nullptr;  // "gelu" if absent
  bool default_bias = false;
  std::optional<bool> default_mlp_bias = {};  // empty: default_bias

  // Fields of every layer that no config changes; activation_limit: the config's "silu" means
  // clamped SwiGLU. What a config says is read into the same fields (families.cc).
  LayerKind layer = {};
  double default_epsilon = 1e-6;
  // If the config has this key, the norms are RMSNorm with its number.
  const char* rms_epsilon_key = nullptr;
  float norm_offset = 0.0f;
  bool has_norm_weights = true;
  bool has_norm_biases = true;  // NormKind::kLayer
  QkNorm qk_norm = QkNorm::kNone;
  MixerRule mixer = MixerRule::kAttention;
  const LatentFamily* latent = nullptr;
  const ScanFamily* scan = nullptr;               // MixerRule::kScan
  const LinearAttentionFamily* linear = nullptr;  // MixerRule::kLinearAttention
  FfnRule ffn = FfnRule::kGiven;
  const char* activation = "silu";
  // The config has feed_forward_proj: "relu", "gated-gelu", ...
  bool has_feed_forward_proj = false;
  bool has_k_bias = true;
  KvHeadRule kv_heads = KvHeadRule::kGiven;
  bool has_relative_position_buckets = false;  // relative_attention_num_buckets, .._max_distance
  bool scales_tied_head = false;               // by 1 / sqrt(hidden): scale_decoder_outputs
  const EncoderFamily* encoder = nullptr;
  // Tokens see those after them; windows reach both ways and are half as wide, plus 1. The models
  // make no text.
  bool is_bidirectional = false;
  const char* bidirectional_key = nullptr;  // false if absent; null: is_bidirectional
  uint32_t default_token_types = 0;         // type_vocab_size; 0: none
  const ScoreHead* score = nullptr;         // null: the checkpoint has no such head
  bool has_first_norm = true;               // attention_norm of the first layer
  bool context_has_offset = false;          // keys.context counts position_offset too
  const char* parallel_key = nullptr;       // null: as in `layer`
  bool default_parallel = true;             // if parallel_key is absent
  ParallelNorms parallel_norms = ParallelNorms::kTwo;

  ExpertRule experts = ExpertRule::kNone;
  const char* experts_key = "num_local_experts";
  const char* experts_alias = "num_experts";  // null, here and below: none
  const char* experts_copy_key = nullptr;     // must not be less than experts_key
  const char* experts_used_key = "num_experts_per_tok";
  const char* experts_used_alias = nullptr;
  const char* expert_ffn_key = "moe_intermediate_size";
  uint32_t default_expert_ffn = 0;  // 0: the config must give it
  bool may_lack_experts = false;    // experts_key may be 0: no layer has experts
  uint32_t default_experts = 0;
  uint32_t default_experts_used = 0;
  bool has_topk_method = false;              // only "greedy"
  const char* norm_topk_prob_key = nullptr;  // key of norm_topk_prob; null: on with softmax scores
  bool always_norms_topk = false;            // no key, and on with all scores
  bool default_norm_topk_prob = false;
  // "softmax", of the chosen experts' logits, or "sigmoid", with norm_topk_prob_key. Null:
  // layer.route_score.
  const char* route_score_key = nullptr;
  const char* topk_least_key = nullptr;  // topk_least; null: 0
  double default_topk_least = 0;
  const char* dense_layers_key = nullptr;  // ExpertRule::kAfterDense
  uint32_t default_dense_layers = 0;
  SharedExpert shared_expert = SharedExpert::kNone;
  const char* shared_expert_key = nullptr;
  uint32_t default_shared_expert = 0;
  const char* shared_sum_key = nullptr;  // "sum", or "average" of routed and shared experts
  bool has_shared_gate = false;
  bool has_router_correction = false;
  const char* correction_key = nullptr;  // switches the correction off; null: always on
  bool has_router_groups = false;        // n_group, topk_group
  uint32_t default_router_groups = 0;
  uint32_t default_router_groups_used = 0;
  bool has_routed_factor = false;
  const char* routed_factor_key = "routed_scaling_factor";
  double default_routed_factor = 1.0;

  const char* layer_heads_key = nullptr;  // the layers' numbers of heads; absent: keys.heads

  // Layers without a window have heads of their own: global_head_dim and, with attention_k_eq_v,
  // num_global_key_value_heads and values made by the key projection. The last layer has no window.
  bool has_global_heads = false;
  uint32_t default_global_head_dim = 0;
  // The last num_kv_shared_layers use the keys and values of the last layer before them with the
  // same window.
  bool has_shared_kv = false;
  uint32_t default_shared_kv = 0;
  bool has_double_wide_key =
      false;                // use_double_wide_mlp: their feed-forward blocks are twice as wide
  bool has_v_norm = false;  // without weights
  uint32_t default_per_layer = 0;  // hidden_size_per_layer_input; 0: no per-layer embeddings
  // Ids behind vocab_size_per_layer_input use row 0; else it must be vocab_size.
  bool pads_per_layer = false;
  // altup_num_inputs residual streams, a low-rank residual of laurel_rank beside attention, their
  // sum by sqrt(2), and gates with the sparsity of activation_sparsity_pattern.
  bool has_streams = false;
  bool has_router_bias = false;
  bool has_expert_bias = true;  // if the other feed-forward blocks have one
  bool gate_up_alternate = false;
  bool up_is_first = false;  // in a tensor that holds gate and up

  WindowRule window = WindowRule::kNone;
  uint32_t default_window = 0;  // by window_key, like the config's
  const char* window_key = "sliding_window";
  uint32_t window_divisor = 1;       // of its number; not 1: sliding_window takes precedence
  int64_t default_window_from = 28;  // max_window_layers
  uint32_t default_pattern = 0;      // 0: every layer
  uint32_t pattern_phase = 1;        // layer i has full attention if (i + this) % pattern is 0
  bool has_pattern_key = false;      // pattern_key takes precedence over default_pattern
  const char* pattern_key = "sliding_window_pattern";
  // Pattern, 1 if absent, of the first dense_layers_key layers, behind which pattern_key's begins.
  const char* prefix_pattern_key = nullptr;
  RopeRule rope = RopeRule::kEveryLayer;
  bool rotates_neighbours = false;
  bool rotates_backwards = false;
  double default_theta = 10000.0;
  double default_local_theta = 10000.0;  // RopeRule::kByWindow
  bool has_partial_rotary = false;
  bool has_rotary_keys = false;  // rotary_pct and rotary_emb_base, the older names
  // Not 0: rotary_dim elements of a head are rotated, and the other keys of RoPE are not read.
  uint32_t default_rotary_dim = 0;
  double default_partial_rotary = 1.0;
  bool ignores_partial_rotary = false;  // rotates whole heads whatever the keys say: type default
  const char* default_rope = nullptr;   // JSON: rope_parameters if the config has none
  bool has_longrope_only = false;       // "yarn" too means longrope
  bool has_rope_mscales = false;        // longrope's amplitude: short_mscale, long_mscale
  bool has_mrope = false;  // mrope_section and mrope_interleaved have no effect on text
  bool ignores_outer_original = false;  // original_max_position_embeddings outside the rope object
  bool has_rope_alpha = false;          // type dynamic: alpha scales the base
  bool has_rope_temperature = false;    // llama_4_scaling_beta in rope_parameters
  // original_max_position_embeddings of the class; takes precedence over the rope object's.
  uint32_t default_original_context = 0;  // 0: the class has none

  ScaleRule scale = ScaleRule::kHeadDim;
  double default_query_scalar = 256;
  bool has_query_temperature = false;  // in layers without RoPE: attn_temperature_tuning
  bool caps_attention = false;         // attn_logit_softcapping
  bool caps_logits = false;            // final_logit_softcapping
  double default_attention_softcap = 0;
  double default_logits_softcap = 0;
  double default_logit_scale = 0;              // not 0: logit_scale multiplies the logits
  bool scales_embedding = false;               // by sqrt(hidden)
  const char* scales_embedding_key = nullptr;  // scales_embedding if absent
  bool has_multipliers = false;  // embedding_multiplier, residual_multiplier, logits_scaling
  // scale_emb; scale_depth / sqrt(layers) in residual sums; dim_model_base / hidden of the logits.
  bool has_depth_factors = false;
  bool has_block_multipliers = false;  // those of MatrixFactors
  bool ropes_by_key = false;           // RoPE only if position_embedding_type is "rope"
  bool multiplies_logits = false;      // by logits_scaling; else divides

  uint32_t default_head_dim = 0;    // 0: hidden / heads
  uint32_t default_kv_heads = 0;    // 0: as many as heads
  uint32_t default_ffn_factor = 0;  // times hidden; 0: the config must give the width
  uint32_t default_max_context = 2048;
  // Attention to as many tokens as this key says, chosen among all: to all in shorter contexts, and
  // there is no longer one.
  const char* sparse_tokens_key = nullptr;
  uint32_t default_sparse_tokens = 0;
  const char* only_layer_type = nullptr;  // every entry of layer_types
  uint32_t position_offset = 0;           // rows of the position table before that of position 0
  bool default_tied = false;
  // The embedding's row of pad_token_id is zeros, whatever the checkpoint has.
  bool zeroes_padding_row = false;
  const char* tied_key = nullptr;             // takes precedence over tie_word_embeddings
  bool is_always_tied = false;                // whatever tie_word_embeddings says
  const char* older_architecture = nullptr;   // an older name in published configs
  const char* embedding_width_key = nullptr;  // must be the hidden size
  Alibi alibi = Alibi::kNone;
  const char* clip_key = nullptr;  // qkv_clip
  // An object with the decoder's keys. Those beside it have no effect, but for the names of the
  // model, the encoder's object, tie_word_embeddings and quantisation.
  const char* inner_key = nullptr;
  const char* nested_key = nullptr;  // an object whose keys are read as "nested_key.KEY"
  KeyAlias aliases[6] = {};
  RequiredValue required[10] = {};
  // Keys that must be there: the defaults of the model's published code are not transformers'.
  const char* needed_keys[6] = {};
  // Keys of published configs that neither the class nor the model of transformers reads. A
  // meaningful value gives a warning.
  const char* ignored_keys[16] = {};

  // False if no layer of any checkpoint has attention.
  bool has_attention() const {
    return (scan == nullptr || scan->has_attention_period) &&
           (linear == nullptr || linear->layers != LinearLayers::kAll);
  }
};

Span<const Family> Families();

}  // namespace arn::convert
