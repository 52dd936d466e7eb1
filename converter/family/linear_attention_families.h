// Rows of families with linear attention, for family_table.cc.
#pragma once

#include "converter/family/family.h"
#include "converter/family/mixture_families.h"

namespace arn::convert {

constexpr TensorNames WithGatedSharedExpert(TensorNames names) {
  const TensorNames& experts = kGatedSharedExpertNames;
  names.router = experts.router;
  names.expert_gate = experts.expert_gate;
  names.expert_up = experts.expert_up;
  names.expert_down = experts.expert_down;
  names.stacked_gate_up = experts.stacked_gate_up;
  names.stacked_down = experts.stacked_down;
  names.shared_gate = experts.shared_gate;
  names.shared_up = experts.shared_up;
  names.shared_down = experts.shared_down;
  names.shared_gate_score = experts.shared_gate_score;
  return names;
}
inline constexpr TensorNames kDeltaRuleExpertNames = WithGatedSharedExpert(kDeltaRuleNames);
inline constexpr TensorNames kFusedDeltaRuleExpertNames =
    WithGatedSharedExpert(kFusedDeltaRuleNames);

constexpr TensorNames WithSharedMlpAndExperts() {
  TensorNames names = kSharedMlpNames;
  names.router = kExpertsByRowsNames.router;
  names.stacked_gate_up = kExpertsByRowsNames.stacked_gate_up;
  names.stacked_down = kExpertsByRowsNames.stacked_down;
  names.is_stacked_by_rows = true;
  names.shared_gate_up = kExpertsByRowsNames.shared_gate_up;
  names.shared_down = kExpertsByRowsNames.shared_down;
  return names;
}
inline constexpr TensorNames kSharedMlpExpertNames = WithSharedMlpAndExperts();

inline constexpr LinearAttentionFamily kDeltaRule = {
    .layers = LinearLayers::kInterval,
    .norm = GatedNorm::kEachHead,
    .has_delta_rule = true,
    .heads = {"linear_num_value_heads", 32},
    .key_heads = {"linear_num_key_heads", 16},
    .key_dim = {"linear_key_head_dim", 128},
    .value_dim = {"linear_value_head_dim", 128},
    .taps = {"linear_conv_kernel_dim", 4},
};

inline constexpr LinearAttentionFamily kSplitDeltaRule = {
    .layers = LinearLayers::kEachFourth,
    .norm = GatedNorm::kEachHead,
    .has_delta_rule = true,
    .derives_sizes = true,
    .doubles_betas_key = "linear_allow_neg_eigval",
    .norm_epsilon = 1e-5f,
    .heads = {"linear_num_value_heads"},
    .key_heads = {"linear_num_key_heads"},
    .key_dim = {"linear_key_head_dim"},
    .value_dim = {"linear_value_head_dim"},
    .taps = {"linear_conv_kernel_dim", 4},
};

inline constexpr LinearAttentionFamily kMamba2 = {
    .layers = LinearLayers::kAll,
    .norm = GatedNorm::kAllHeads,
    .heads = {"num_heads", 128},
    .key_heads = {"n_groups", 8},
    .key_dim = {"state_size", 128},
    .value_dim = {"head_dim", 64},
    .taps = {"conv_kernel", 4},
    .expand_key = "expand",
    .conv_bias_key = "use_conv_bias",
    .in_bias_key = "use_bias",
};

// The keys of Granite 4, Bamba and Falcon-H1.
constexpr LinearAttentionFamily MambaLayers(LinearLayers layers, GatedNorm norm) {
  return {.layers = layers,
          .norm = norm,
          .heads = {"mamba_n_heads", 128},
          .key_heads = {"mamba_n_groups", 1},
          .key_dim = {"mamba_d_state", 256},
          .value_dim = {"mamba_d_head"},
          .taps = {"mamba_d_conv", 4},
          .expand_key = "mamba_expand",
          .conv_bias_key = "mamba_conv_bias",
          .in_bias_key = "mamba_proj_bias"};
}
inline constexpr LinearAttentionFamily kMambaTypes =
    MambaLayers(LinearLayers::kMambaTypes, GatedNorm::kAllHeads);
inline constexpr LinearAttentionFamily kMambaIndices =
    MambaLayers(LinearLayers::kIndices, GatedNorm::kAllHeads);

constexpr LinearAttentionFamily WithWidthKey() {
  LinearAttentionFamily linear = MambaLayers(LinearLayers::kBeside, GatedNorm::kByKeys);
  linear.width = {"mamba_d_ssm", 1024};
  linear.out_bias_key = "projectors_bias";
  return linear;
}
inline constexpr LinearAttentionFamily kMambaBeside = WithWidthKey();

inline constexpr LinearAttentionFamily kMambaBlocks = {
    .layers = LinearLayers::kBlocks,
    .norm = GatedNorm::kGroups,
    .heads = {"mamba_num_heads", 128},
    .key_heads = {"n_groups", 8},
    .key_dim = {"ssm_state_size", 128},
    .value_dim = {"mamba_head_dim", 64},
    .taps = {"conv_kernel", 4},
    .conv_bias_key = "use_conv_bias",
    .in_bias_key = "use_bias",
    .activation_key = "mamba_hidden_act",
    .least_step_key = "time_step_min",
};

constexpr TensorNames WithSplitDeltaRule() {
  TensorNames names = kPostNormNames;
  // Names of published checkpoints, which transformers renames.
  names.other_parts[0] = {".input_layernorm.", ".attention_layer_norm."};
  names.other_parts[1] = {".post_attention_layernorm.", ".feedforward_layer_norm."};
  names.state_attention_norm = "model.layers.{}.input_layernorm";
  names.state_ffn_norm = "model.layers.{}.post_attention_layernorm";
  names.mixer_z = "model.layers.{}.linear_attn.g_proj";
  names.mixer_a = "model.layers.{}.linear_attn.a_proj";
  names.mixer_b = "model.layers.{}.linear_attn.b_proj";
  names.mixer_q = "model.layers.{}.linear_attn.q_proj";
  names.mixer_k = "model.layers.{}.linear_attn.k_proj";
  names.mixer_v = "model.layers.{}.linear_attn.v_proj";
  names.conv_q = "model.layers.{}.linear_attn.q_conv1d";
  names.conv_k = "model.layers.{}.linear_attn.k_conv1d";
  names.conv_v = "model.layers.{}.linear_attn.v_conv1d";
  names.scan_rates = "model.layers.{}.linear_attn.A_log";
  names.time_step_bias = "model.layers.{}.linear_attn.dt_bias";
  names.mixer_norm = "model.layers.{}.linear_attn.o_norm";
  names.mixer_out = "model.layers.{}.linear_attn.o_proj";
  return names;
}
inline constexpr TensorNames kSplitDeltaRuleNames = WithSplitDeltaRule();

inline constexpr Family kLinearAttentionFamilies[] = {
    {.architecture = "OlmoHybridForCausalLM",
     .model_type = "olmo_hybrid",
     .names = &kSplitDeltaRuleNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .qk_norm = QkNorm::kAllHeads,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kSplitDeltaRule,
     .rope = RopeRule::kByTheta,
     .default_max_context = 65536},
    {.architecture = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .names = &kDeltaRuleNames,
     .sizes = {.vocab = 248320, .hidden = 4096, .layers = 32, .heads = 16, .ffn = 12288},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.has_attention_gate = true},
     .norm_offset = 1.0f,
     .qk_norm = QkNorm::kEachHead,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kDeltaRule,
     .has_partial_rotary = true,
     .default_partial_rotary = 0.25,
     .has_mrope = true,
     .default_head_dim = 256,
     .default_kv_heads = 4,
     .default_max_context = 32768},
    {.architecture = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .names = &kDeltaRuleExpertNames,
     .keys = {.ffn = nullptr},
     .sizes = {.vocab = 248320, .hidden = 2048, .layers = 40, .heads = 16},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.has_attention_gate = true},
     .norm_offset = 1.0f,
     .qk_norm = QkNorm::kEachHead,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kDeltaRule,
     .experts = ExpertRule::kEveryLayer,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 512,
     .default_experts = 256,
     .default_experts_used = 8,
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "shared_expert_intermediate_size",
     .default_shared_expert = 512,
     .has_shared_gate = true,
     .has_partial_rotary = true,
     .default_partial_rotary = 0.25,
     .has_mrope = true,
     .default_head_dim = 256,
     .default_kv_heads = 2,
     .default_max_context = 32768,
     .ignored_keys = {"norm_topk_prob", "decoder_sparse_step", "mlp_only_layers",
                      "intermediate_size"}},
    {.architecture = "Qwen3NextForCausalLM",
     .model_type = "qwen3_next",
     .names = &kFusedDeltaRuleExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.has_attention_gate = true},
     .norm_offset = 1.0f,
     .qk_norm = QkNorm::kEachHead,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kDeltaRule,
     .experts = ExpertRule::kSparseStep,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 512,
     .may_lack_experts = true,
     .default_experts = 512,
     .default_experts_used = 10,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "shared_expert_intermediate_size",
     .default_shared_expert = 512,
     .has_shared_gate = true,
     .has_partial_rotary = true,
     .default_partial_rotary = 0.25,
     .default_head_dim = 256,
     .default_kv_heads = 2,
     .default_max_context = 32768},
    {.architecture = "Mamba2ForCausalLM",
     .model_type = "mamba2",
     .names = &kMamba2Names,
     .keys = {.epsilon = "layer_norm_epsilon"},
     .default_epsilon = 1e-5,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kMamba2,
     .ffn = FfnRule::kNone,
     .rope = RopeRule::kNone,
     .default_max_context = kAnyContext,
     .ignored_keys = {"norm_before_gate", "time_step_rank", "intermediate_size"}},
    {.architecture = "GraniteMoeHybridForCausalLM",
     .model_type = "granitemoehybrid",
     .names = &kSharedMlpExpertNames,
     .keys = {.ffn = "shared_intermediate_size"},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kMambaTypes,
     .experts = ExpertRule::kEveryLayer,
     .experts_alias = nullptr,
     .expert_ffn_key = "intermediate_size",
     .may_lack_experts = true,
     .default_experts = 8,
     .default_experts_used = 2,
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "shared_intermediate_size",
     .scale = ScaleRule::kMultiplier,
     .has_multipliers = true,
     .ropes_by_key = true},
    {.architecture = "BambaForCausalLM",
     .model_type = "bamba",
     .names = &kMambaLayerNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .default_epsilon = 1e-5,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kMambaIndices,
     .ignores_partial_rotary = true,
     .default_kv_heads = 8,
     .default_max_context = 262144},
    {.architecture = "FalconH1ForCausalLM",
     .model_type = "falcon_h1",
     .names = &kMambaLayerNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .default_epsilon = 1e-5,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kMambaBeside,
     .has_block_multipliers = true,
     .default_kv_heads = 8,
     .default_max_context = 8192,
     .ignored_keys = {"mamba_use_mlp", "mlp_expansion_factor"}},
    {.architecture = "NemotronHForCausalLM",
     .model_type = "nemotron_h",
     .names = &kMambaBlockNames,
     .keys = {.epsilon = "layer_norm_epsilon", .activation = "mlp_hidden_act"},
     .mlp_bias = Bias::kByKey,
     .layer = {.is_gated = false, .route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-20f},
     .default_epsilon = 1e-5,
     .mixer = MixerRule::kLinearAttention,
     .linear = &kMambaBlocks,
     .activation = "relu2",
     .experts = ExpertRule::kBlocks,
     .experts_key = "n_routed_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 7688,
     .default_experts = 8,
     .default_experts_used = 2,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "moe_shared_expert_intermediate_size",
     .default_shared_expert = 7688,
     .has_router_correction = true,
     .has_router_groups = true,
     .default_router_groups = 1,
     .default_router_groups_used = 1,
     .has_routed_factor = true,
     .has_expert_bias = false,
     .rope = RopeRule::kNone,
     .default_head_dim = 128,
     .default_kv_heads = 8,
     .default_max_context = 4096,
     .required = {{"moe_latent_size", "null"}},
     .ignored_keys = {"rms_norm_eps", "mamba_proj_bias", "attention_head_dim", "expand",
                      "time_step_limit"}},
};

}  // namespace arn::convert
