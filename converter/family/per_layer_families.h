// Rows of families with per-layer embeddings, for family_table.cc, and their tensor names.
#pragma once

#include "converter/family/family.h"
#include "converter/family/family_names.h"

namespace arn::convert {

constexpr TensorNames WithPerLayerEmbeddings() {
  TensorNames names = kSandwichNames;
  names.per_layer_embedding = "model.embed_tokens_per_layer";
  names.per_layer_projection = "model.per_layer_model_projection";
  names.per_layer_projection_norm = "model.per_layer_projection_norm";
  names.per_layer_gate = "model.layers.{}.per_layer_input_gate";
  names.per_layer_out = "model.layers.{}.per_layer_projection";
  names.per_layer_norm = "model.layers.{}.post_per_layer_input_norm";
  names.output_scale = "model.layers.{}.layer_scalar";
  return names;
}
inline constexpr TensorNames kPerLayerNames = WithPerLayerEmbeddings();

// Experts beside the feed-forward block, which is the shared expert then.
constexpr TensorNames WithExpertsBeside() {
  TensorNames names = kPerLayerNames;
  names.router = "model.layers.{}.router.proj";
  names.router_norm = "model.layers.{}.router.scale";
  names.expert_factors = "model.layers.{}.router.per_expert_scale";
  names.stacked_gate_up = "model.layers.{}.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.experts.down_proj";
  names.is_stacked_by_rows = true;
  names.experts_norm = "model.layers.{}.pre_feedforward_layernorm_2";
  names.experts_post_norm = "model.layers.{}.post_feedforward_layernorm_2";
  names.shared_post_norm = "model.layers.{}.post_feedforward_layernorm_1";
  names.shared_gate = names.gate;
  names.shared_up = names.up;
  names.shared_down = names.down;
  return names;
}
inline constexpr TensorNames kPerLayerExpertNames = WithExpertsBeside();

constexpr TensorNames WithStreams() {
  TensorNames names = kPerLayerNames;
  names.output_scale = nullptr;
  names.stream_in = "model.altup_projections.{}";
  names.stream_out = "model.altup_unembed_projections.{}";
  names.stream_router_norm = "model.layers.{}.altup.router_norm";
  names.stream_router = "model.layers.{}.altup.modality_router";
  names.stream_predict = "model.layers.{}.altup.prediction_coefs";
  names.stream_correct = "model.layers.{}.altup.correction_coefs";
  names.stream_scale = "model.layers.{}.altup.correct_output_scale";
  names.laurel_low = "model.layers.{}.laurel.linear_left";
  names.laurel_out = "model.layers.{}.laurel.linear_right";
  names.laurel_norm = "model.layers.{}.laurel.post_laurel_norm";
  return names;
}
inline constexpr TensorNames kStreamNames = WithStreams();

inline constexpr Family kGlobalHeadFamily = {
    .architecture = "Gemma4ForCausalLM",
    .model_type = "gemma4_text",
    .names = &kPerLayerExpertNames,
    .keys = {.activation = "hidden_activation"},
    .sizes = {.vocab = 262144, .hidden = 2304, .layers = 30, .heads = 8, .ffn = 9216},
    .qkv_bias = Bias::kByKey,
    .attention_out_bias = Bias::kByKey,
    .qk_norm = QkNorm::kEachHead,
    .activation = "gelu_pytorch_tanh",
    .experts = ExpertRule::kIfEnabled,
    .experts_key = "num_experts",
    .experts_alias = nullptr,
    .experts_used_key = "top_k_experts",
    .shared_expert = SharedExpert::kFeedForward,
    .has_global_heads = true,
    .default_global_head_dim = 512,
    .has_shared_kv = true,
    .has_double_wide_key = true,
    .has_v_norm = true,
    .default_per_layer = 256,
    .window = WindowRule::kPattern,
    .default_window = 512,
    .default_pattern = 6,
    .rope = RopeRule::kByType,
    .scale = ScaleRule::kOne,
    .caps_logits = true,
    .scales_embedding = true,
    .default_head_dim = 256,
    .default_kv_heads = 4,
    .default_max_context = 131072,
    .default_tied = true,
    .ignored_keys = {"num_experts", "top_k_experts", "moe_intermediate_size"}};

// Without per-layer embeddings and experts.
constexpr Family WithoutPerLayerEmbeddings() {
  Family family = kGlobalHeadFamily;
  family.architecture = "Gemma4UnifiedForCausalLM";
  family.model_type = "gemma4_unified_text";
  family.experts = ExpertRule::kNone;
  family.shared_expert = SharedExpert::kNone;
  family.default_per_layer = 0;
  family.default_window = 1024;
  family.default_max_context = 262144;
  for (const char*& key : family.ignored_keys) key = nullptr;
  return family;
}

inline constexpr Family kPerLayerFamilies[] = {
    kGlobalHeadFamily,
    WithoutPerLayerEmbeddings(),
    {.architecture = "Gemma3nForCausalLM",
     .model_type = "gemma3n_text",
     .names = &kStreamNames,
     .keys = {.activation = "hidden_activation"},
     .sizes = {.vocab = 262400, .hidden = 2048, .layers = 35, .heads = 8, .ffn = 16384},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .qk_norm = QkNorm::kEachHead,
     .ffn = FfnRule::kByLayer,
     .activation = "gelu_pytorch_tanh",
     .has_shared_kv = true,
     .default_shared_kv = 15,
     .has_v_norm = true,
     .default_per_layer = 256,
     .pads_per_layer = true,
     .has_streams = true,
     .window = WindowRule::kPattern,
     .default_window = 512,
     .default_pattern = 5,
     .rope = RopeRule::kByWindow,
     .default_theta = 1000000.0,
     .scale = ScaleRule::kOne,
     .caps_logits = true,
     .default_logits_softcap = 30,
     .scales_embedding = true,
     .default_head_dim = 256,
     .default_kv_heads = 2,
     .default_max_context = 32768,
     .default_tied = true,
     .ignored_keys = {"query_pre_attn_scalar"}},
};

}  // namespace arn::convert
