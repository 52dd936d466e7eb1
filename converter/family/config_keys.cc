#include "converter/family/config_keys.h"

#include <algorithm>
#include <cstring>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Metadata, training parameters, and generation defaults that are read elsewhere.
constexpr const char* kHarmlessConfigKeys[] = {
    // identity and files
    "_name_or_path",
    "name_or_path",
    "_commit_hash",
    "architectures",
    "auto_map",
    "model_type",
    "transformers_version",
    "tokenizer_class",
    "transformers.js_config",
    "unsloth_version",
    "unsloth_fixed",
    "is_llama_config",
    "finetuning_task",
    "task_specific_params",
    "id2label",
    "label2id",
    "num_labels",
    "_num_labels",
    "problem_type",
    "model_max_length",
    "max_sequence_length",
    "keys_to_ignore_at_inference",
    // how the tensors were stored, or caching and output switches
    "dtype",
    "torch_dtype",
    "use_cache",
    "torchscript",
    "use_bfloat16",
    "pretraining_tp",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "_attn_implementation_internal",
    "_flash_attn_2_enabled",
    "use_flash_attn",
    "use_flash_attention",
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "experts_implementation",
    "_experts_implementation",
    "_experts_implementation_internal",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "use_return_dict",
    "chunk_size_feed_forward",
    "tf_legacy_loss",
    // training
    "attention_dropout",
    "attention_probs_dropout_prob",
    "hidden_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
    "embedding_dropout",
    "residual_dropout",
    "embed_dropout",
    "resid_dropout",
    "classifier_dropout",
    "classifier_dropout_rate",
    "summary_type",
    "summary_use_proj",
    "summary_activation",
    "summary_proj_to_labels",
    "summary_first_dropout",
    "reorder_and_upcast_attn",
    "pad_head_dim_to_multiple_of",  // with zeros
    "n_ctx",
    "cache_implementation",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "hybrid",
    // of a multi-token prediction head, which is left out; states are always f32
    "mtp_num_hidden_layers",
    "mtp_use_dedicated_embeddings",
    "mamba_ssm_dtype",
    "mamba_ssm_cache_dtype",
    "use_mamba_kernels",
    "num_logits_to_keep",
    "chunk_size",  // of tokens in transformers' kernels
    "mamba_chunk_size",
    "z_loss_coefficient",
    "num_nextn_predict_layers",
    "mtp_layers_block_type",
    "mtp_hybrid_override_pattern",
    "rescale_prenorm_residual",
    "time_step_scale",
    "time_step_min",
    "time_step_max",
    "time_step_init_scheme",
    "time_step_floor",
    // of an indexer, which selects all tokens of a context that ends with index_topk
    "index_head_dim",
    "index_n_heads",
    "indexer_types",
    "index_topk_freq",
    "index_skip_topk_offset",
    "index_topk_pattern",
    "indexer_rope_interleave",
    "linear_a_log_min",
    "linear_a_log_max",
    "linear_dt_min",
    "linear_dt_max",
    "linear_dt_init_floor",
    "block_mlp_init_scale",
    "block_out_init_scale",
    "block_use_xavier_init",
    "conv_use_xavier_init",
    // aliases of keys that transformers reads elsewhere, or alternative ways to the same numbers
    "_sliding_window_pattern",  // redundant with layer_types
    "hidden_act",               // redundant with hidden_activation
    "d_model",
    "d_inner",
    "block_dim",
    "block_norm_eps",
    "conv_dim",
    "conv_dim_out",
    "num_heads",
    "block_use_swiglu",
    "use_pos_enc",
    "n_layer",
    "pad_vocab_size_multiple",
    "rms_norm",
    "mlp_type",
    "experts_per_token",
    "initial_context_length",
    "full_attn_mod",
    "interpolate_factor",
    "residual_in_fp32",
    "fused_add_norm",
    "use_mambapy",
    "use_associative_scan",
    "initializer_range",
    "embedding_initializer_range",
    "init_method",
    "initializer_factor",
    "init_std",
    "dropout",
    "dropout_rate",
    "activation_dropout",
    "encoder_layerdrop",
    "decoder_layerdrop",
    "layerdrop",
    "emb_pdrop",
    "apply_spec_augment",
    "mask_time_prob",
    "mask_time_length",
    "mask_time_min_masks",
    "mask_feature_prob",
    "mask_feature_length",
    "mask_feature_min_masks",
    "median_filter_width",
    "use_weighted_layer_sum",
    "classifier_proj_size",
    "scale_embedding",  // transformers reads it but applies it to nothing
    "is_gated_act",
    "dense_act_fn",
    "gradient_checkpointing",
    "neftune_noise_alpha",
    // tokens and generation: generation_config.json and the token ids are read at their point of
    // use
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "unk_token_id",
    "eod_token_id",
    "decoder_start_token_id",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    "prefix",
    "tie_encoder_decoder",
    "is_decoder",
    "cross_attention_hidden_size",
    "max_new_tokens",
    "forced_decoder_ids",
    "output_past",
    // effective only with use_sliding_window, which is checked separately
    "max_window_layers",
};

// Keys that change the computation on architectures that honour them. `off`: the value, besides
// null, false, 0 and empty, that switches the key off.
struct Significant {
  const char* key;
  const char* off;
};
constexpr Significant kSignificant[] = {
    {"attention_bias", ""},
    {"mlp_bias", ""},
    {"use_bias", ""},
    {"qkv_bias", ""},
    {"sliding_window", ""},
    {"use_sliding_window", ""},
    {"sliding_window_pattern", ""},
    {"attention_chunk_size", ""},
    {"layer_types", ""},
    {"mlp_layer_types", ""},
    {"attn_logit_softcapping", ""},
    {"final_logit_softcapping", ""},
    {"logit_softcapping", ""},
    {"query_pre_attn_scalar", ""},
    {"attention_multiplier", "1.0"},
    {"embedding_multiplier", "1.0"},
    {"residual_multiplier", "1.0"},
    {"logits_scaling", "1.0"},
    {"logit_scale", "1.0"},
    {"scale_depth", "1.0"},
    {"scale_emb", "1.0"},
    {"dim_model_base", ""},
    {"clip_qkv", ""},
    {"use_qk_norm", ""},
    {"qk_layernorm", ""},
    {"qk_norm", ""},
    {"layer_norm_type", ""},
    {"normalization_function", "\"rmsnorm\""},
    {"norm_type", ""},
    {"parallel_attn", ""},
    {"use_parallel_residual", ""},
    {"alibi", ""},
    {"scale_attn_by_inverse_layer_idx", ""},
    {"use_bidirectional_attention", ""},
    {"position_embedding_type", "\"rope\""},
    {"rope_interleaved", ""},
    {"rotary_pct", "1.0"},
    {"rotary_dim", ""},
    {"rope_local_base_freq", ""},
    {"no_rope_layers", ""},
    {"no_rope_layer_interval", ""},
    {"use_mrope", ""},
    {"attn_temperature_tuning", ""},
    {"scale_attn_weights", "true"},
    {"swiglu_limit", ""},
    {"lm_head_bias", ""},
    {"num_experts", ""},
    {"num_local_experts", ""},
    {"num_experts_per_tok", ""},
    {"n_routed_experts", ""},
    {"moe_intermediate_size", ""},
    {"q_lora_rank", ""},
    {"kv_lora_rank", ""},
    {"hidden_activation", "\"silu\""},
    {"activation_function", "\"silu\""},
    {"mlp_hidden_act", "\"silu\""},
    {"is_encoder_decoder", ""},
    {"add_cross_attention", ""},
    {"pruned_heads", ""},
    {"enable_moe_block", ""},
    {"rope_scaling", ""},
    {"quantization_config", ""},
    {"compression_config", ""},
    {"text_config", ""},
    {"vision_config", ""},
};

// Keys that the converter's families read.
constexpr const char* kRead[] = {
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "tie_word_embeddings",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "attention_bias",
    "mlp_bias",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "n_embd",
    "n_head",
    "n_layer",
    "n_inner",
    "n_positions",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "norm_epsilon",
    "hidden_activation",
    "activation_function",
    "use_bias",
    "use_parallel_residual",
    "rotary_pct",
    "rotary_emb_base",
    "rope_local_base_freq",
    "sliding_window_pattern",
    "no_rope_layers",
    "no_rope_layer_interval",
    "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "attention_multiplier",
    "embedding_multiplier",
    "residual_multiplier",
    "logits_scaling",
    "scale_attn_weights",
    "num_experts",
    "num_local_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "norm_topk_prob",
    "decoder_sparse_step",
    "mlp_only_layers",
    "num_layers",
    "num_heads",
    "window_size",
    "attention_types",
    "attention_layers",
    "expand",
    "conv_kernel",
    "state_size",
    "time_step_rank",
    "use_conv_bias",
    "norm_eps",
    "conv_L_cache",
    "conv_bias",
    "full_attn_idxs",
    "block_ff_dim",
    "block_multiple_of",
    "block_ffn_dim_multiplier",
    "block_auto_adjust_ff_dim",
    "tie_embedding",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "attn_output_gate",
    "full_attention_interval",
    "n_groups",
    "mamba_n_heads",
    "mamba_n_groups",
    "mamba_d_state",
    "mamba_d_head",
    "mamba_d_conv",
    "mamba_d_ssm",
    "mamba_expand",
    "mamba_conv_bias",
    "mamba_proj_bias",
    "mamba_rms_norm",
    "mamba_norm_before_gate",
    "mamba_num_heads",
    "mamba_head_dim",
    "mamba_hidden_act",
    "mlp_hidden_act",
    "ssm_state_size",
    "time_step_limit",
    "projectors_bias",
    "layers_block_type",
    "hybrid_override_pattern",
    "attn_layer_indices",
    "shared_intermediate_size",
    "position_embedding_type",
    "lm_head_multiplier",
    "ssm_multipliers",
    "mlp_multipliers",
    "key_multiplier",
    "attention_in_multiplier",
    "attention_out_multiplier",
    "ssm_in_multiplier",
    "ssm_out_multiplier",
    "scale_emb",
    "scale_depth",
    "dim_model_base",
};

template <size_t N>
bool Contains(const char* const (&list)[N], const std::string& key) {
  return std::any_of(std::begin(list), std::end(list),
                     [&](const char* entry) { return key == entry; });
}

bool SaysNothing(const nlohmann::json& value) {
  return value.is_null() || value == false || (value.is_number() && value == 0) || value == "" ||
         (value.is_structured() && value.empty());
}

bool IsOff(const nlohmann::json& value, const Significant& row) {
  return SaysNothing(value) || (row.off[0] != '\0' && value == nlohmann::json::parse(row.off));
}

// Returns KEY of "NESTED.KEY".
std::string WithoutPrefix(const std::string& key, const char* nested) {
  const std::string prefix = nested == nullptr ? "" : std::string(nested) + ".";
  return key.compare(0, prefix.size(), prefix) == 0 ? key.substr(prefix.size()) : key;
}

// Comma-separated, as the command line takes them.
std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

void CheckUnreadConfigKeys(ConfigReader* config, const nlohmann::json& json, const Family& family,
                           const std::vector<std::string>& ignored,
                           std::vector<std::string>* warnings) {
  const auto is_ignored = [&](const std::string& key) {
    return std::find(ignored.begin(), ignored.end(), key) != ignored.end() ||
           std::any_of(std::begin(family.ignored_keys), std::end(family.ignored_keys),
                       [&](const char* entry) { return entry != nullptr && key == entry; });
  };
  std::vector<std::string> unknown, without_effect;
  for (const std::string& key : config->Unread()) {
    const nlohmann::json& value = json[key];
    const auto row = std::find_if(std::begin(kSignificant), std::end(kSignificant),
                                  [&](const Significant& s) { return key == s.key; });
    const bool is_significant = row != std::end(kSignificant);
    const bool is_harmless = Contains(kHarmlessConfigKeys, WithoutPrefix(key, family.nested_key));
    if (is_significant ? IsOff(value, *row) : SaysNothing(value) || is_harmless) {
      continue;
    }
    if (is_ignored(key)) {
      without_effect.push_back(key + " " + Shown(value));
    } else if (is_significant) {
      Fail("%s: %s is %s, which is not supported for %s", config->label().c_str(), key.c_str(),
           Shown(value).c_str(), family.architecture);
    } else {
      unknown.push_back(key);
    }
  }
  if (!without_effect.empty()) {
    warnings->push_back(config->label() + ": keys that have no effect on " + family.architecture +
                        ": " + JoinNames(without_effect, 20));
  }
  if (unknown.empty()) return;
  Fail(
      "%s: unknown keys: %s (if they do not change what the model computes: --ignore-config-keys "
      "%s)",
      config->label().c_str(), JoinNames(unknown, 20).c_str(), Joined(unknown).c_str());
}

void CheckRequiredConfigKeys(ConfigReader* config, const Family& family, uint32_t hidden) {
  // GPT-2's attention switch that no published model uses.
  if (!config->Bool("scale_attn_weights", true)) config->FailKey("scale_attn_weights", "true");
  for (const RequiredValue& row : family.required) {
    if (row.key == nullptr) break;
    const nlohmann::json* value = config->Find(row.key);
    const bool is_null = value == nullptr && config->IsNull(row.key);
    const nlohmann::json wanted = nlohmann::json::parse(row.value);
    const bool is_off = wanted.is_null() || wanted == false || wanted == 0;
    if (is_null ? !is_off : value != nullptr && *value != wanted) {
      config->FailKey(row.key, row.value);
    }
  }
  for (const char* key : family.needed_keys) {
    if (key != nullptr && !config->Has(key)) config->FailKey(key, "a value: it has no default");
  }
  if (const char* key = family.embedding_width_key) {
    if (config->Count(key).value_or(hidden) != hidden) {
      config->FailKey(key, Format("the width of the layers, %u", hidden).c_str());
    }
  }
}

std::vector<std::string> KeysThatNobodyKnows(const nlohmann::json& json) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : json.items()) {
    if (!Contains(kHarmlessConfigKeys, key) && !Contains(kRead, key) && !SaysNothing(value)) {
      unknown.push_back(key);
    }
  }
  return unknown;
}

}  // namespace arn::convert
