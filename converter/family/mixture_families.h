// Rows of families with experts, for family_table.cc, and their tensor names.
#pragma once

#include "converter/family/family.h"
#include "converter/family/family_names.h"

namespace arn::convert {

constexpr TensorNames WithSharedExpertGate() {
  TensorNames names = kExpertNames;
  names.shared_gate = "model.layers.{}.mlp.shared_expert.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_expert.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_expert.down_proj";
  names.shared_gate_score = "model.layers.{}.mlp.shared_expert_gate";
  return names;
}
inline constexpr TensorNames kGatedSharedExpertNames = WithSharedExpertGate();

constexpr TensorNames WithCorrectedRouter() {
  TensorNames names = kExpertNames;
  names.shared_gate = "model.layers.{}.mlp.shared_experts.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_experts.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_experts.down_proj";
  names.router_correction = "model.layers.{}.mlp.gate.e_score_correction_bias";
  return names;
}

// A multi-token prediction head that is stored as one layer more, with a copy of what it shares
// (DeepSeek-V3, arXiv:2412.19437, section 2.2).
constexpr TensorNames AsNextLayer(TensorNames names) {
  names.mtp_prefix = "model.layers.{}.";
  names.mtp_embedding_norm = "model.layers.{}.enorm";
  names.mtp_hidden_norm = "model.layers.{}.hnorm";
  names.mtp_fc = "model.layers.{}.eh_proj";
  names.mtp_embedding_copy = "model.layers.{}.embed_tokens";
  names.mtp_head_copy = "model.layers.{}.shared_head.head";
  names.final_norm = "model.layers.{}.shared_head.norm";
  return names;
}

constexpr TensorNames WithMtp(TensorNames names, const TensorNames* mtp) {
  names.mtp = mtp;
  return names;
}

inline constexpr TensorNames kCorrectedRouterMtpNames = AsNextLayer(WithCorrectedRouter());
inline constexpr TensorNames kCorrectedRouterNames =
    WithMtp(WithCorrectedRouter(), &kCorrectedRouterMtpNames);

constexpr TensorNames WithRouterStatistics() {
  TensorNames names = WithCorrectedRouter();
  names.extra_head = "model.mtp_";
  names.router_correction = "model.layers.{}.mlp.moe_statics.e_score_correction_bias";
  return names;
}
inline constexpr TensorNames kRouterStatisticsNames = WithRouterStatistics();

constexpr TensorNames WithCorrectionOutside() {
  TensorNames names = WithCorrectedRouter();
  names.extra_head = "mtp.";
  names.router_correction = "model.layers.{}.mlp.e_score_correction_bias";
  return names;
}
inline constexpr TensorNames kExaoneExpertNames = WithCorrectionOutside();

constexpr TensorNames WithExpertBias() {
  TensorNames names = WithCorrectedRouter();
  names.router = "model.layers.{}.mlp.router.gate";
  names.router_correction = "model.layers.{}.mlp.expert_bias";
  names.shared_gate = "model.layers.{}.mlp.shared_mlp.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_mlp.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_mlp.down_proj";
  return names;
}
inline constexpr TensorNames kHyExpertNames = WithExpertBias();

constexpr TensorNames WithExpertsByRows() {
  TensorNames names = kDecoderNames;
  names.router = "model.layers.{}.block_sparse_moe.router.layer";
  names.stacked_gate_up = "model.layers.{}.block_sparse_moe.input_linear.weight";
  names.stacked_down = "model.layers.{}.block_sparse_moe.output_linear.weight";
  names.is_stacked_by_rows = true;
  names.shared_gate_up = "model.layers.{}.shared_mlp.input_linear";
  names.shared_down = "model.layers.{}.shared_mlp.output_linear";
  return names;
}
inline constexpr TensorNames kExpertsByRowsNames = WithExpertsByRows();

constexpr TensorNames WithShortConvolutionsAndExperts() {
  TensorNames names = kShortConvolutionNames;
  names.router = "model.layers.{}.feed_forward.gate";
  names.router_correction = "model.layers.{}.feed_forward.expert_bias";
  names.expert_gate = "model.layers.{}.feed_forward.experts.{}.w1";
  names.expert_up = "model.layers.{}.feed_forward.experts.{}.w3";
  names.expert_down = "model.layers.{}.feed_forward.experts.{}.w2";
  names.stacked_gate_up = "model.layers.{}.feed_forward.experts.gate_up_proj";
  names.stacked_down = "model.layers.{}.feed_forward.experts.down_proj";
  return names;
}
inline constexpr TensorNames kShortConvolutionExpertNames = WithShortConvolutionsAndExperts();

constexpr TensorNames WithQueryNormsAndExperts() {
  TensorNames names = kQueryNormNames;
  names.router = "model.layers.{}.mlp.gate.wg";
  names.expert_gate = kExpertNames.expert_gate;
  names.expert_up = kExpertNames.expert_up;
  names.expert_down = kExpertNames.expert_down;
  names.stacked_gate_up = kExpertNames.stacked_gate_up;
  names.stacked_down = kExpertNames.stacked_down;
  names.shared_gate = "model.layers.{}.mlp.shared_mlp.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_mlp.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_mlp.down_proj";
  return names;
}
inline constexpr TensorNames kQueryNormExpertNames = WithQueryNormsAndExperts();

// The shape of DeepSeek-V3's experts: sigmoid routing, corrected, by groups, beside shared ones.
constexpr Family WithCorrectedExperts(Family family) {
  family.layer.route_score = RouteScore::kSigmoid;
  family.layer.topk_epsilon = 1e-20f;
  family.norm_topk_prob_key = "norm_topk_prob";
  family.shared_expert = SharedExpert::kCount;
  family.has_router_correction = true;
  family.has_router_groups = true;
  family.default_router_groups = family.default_router_groups_used = 1;
  family.has_routed_factor = true;
  return family;
}

constexpr TensorNames WithExpertsOf(TensorNames names, const TensorNames& experts) {
  names.router = experts.router;
  names.expert_gate = experts.expert_gate;
  names.expert_up = experts.expert_up;
  names.expert_down = experts.expert_down;
  names.stacked_gate_up = experts.stacked_gate_up;
  names.stacked_down = experts.stacked_down;
  names.shared_gate = experts.shared_gate;
  names.shared_up = experts.shared_up;
  names.shared_down = experts.shared_down;
  return names;
}
inline constexpr TensorNames kPostNormExpertNames = WithExpertsOf(kPostNormNames, kExpertNames);

constexpr TensorNames WithGatedAttentionAndExperts() {
  TensorNames names = WithExpertsOf(kDecoderNames, WithCorrectedRouter());
  names.router = "model.layers.{}.mlp.router.gate";
  names.router_correction = "model.layers.{}.mlp.expert_bias";
  names.attention_gate = "model.layers.{}.self_attn.gate_proj";
  names.attention_post_norm = "model.layers.{}.post_attention_layernorm";
  names.ffn_norm = "model.layers.{}.pre_mlp_layernorm";
  names.ffn_post_norm = "model.layers.{}.post_mlp_layernorm";
  return names;
}
inline constexpr TensorNames kGatedAttentionExpertNames = WithGatedAttentionAndExperts();

constexpr TensorNames WithCorrectedBlockExperts() {
  TensorNames names = kBlockExpertNames;
  names.router_correction = "model.layers.{}.block_sparse_moe.e_score_correction_bias";
  return names;
}
inline constexpr TensorNames kCorrectedBlockExpertNames = WithCorrectedBlockExperts();

constexpr TensorNames WithExpertsByColumns() {
  TensorNames names = WithCorrectedRouter();
  names.expert_gate = names.expert_up = names.expert_down = nullptr;
  names.router = "model.layers.{}.mlp.router";
  names.stacked_gate_up = "model.layers.{}.mlp.experts.fc1.weight";
  names.stacked_down = "model.layers.{}.mlp.experts.fc2.weight";
  return names;
}
inline constexpr TensorNames kExpertsByColumnsNames = WithExpertsByColumns();

constexpr TensorNames WithHeadGatesAndExperts() {
  TensorNames names = WithCorrectedRouter();
  // Names of published checkpoints, which transformers renames.
  names.other_parts[0] = {".mlp.gate.e_score", ".mlp.experts.e_score"};
  names.other_parts[1] = {".shared_experts.", ".shared_expert."};
  names.attention_gate = "model.layers.{}.self_attn.g_proj";
  return names;
}
inline constexpr TensorNames kHeadGateExpertNames = WithHeadGatesAndExperts();

inline constexpr const char* kLagunaRope =
    R"({"full_attention": {"rope_type": "default", "rope_theta": 5e5,
                           "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4,
                              "partial_rotary_factor": 1.0}})";

inline constexpr const char* kMellumRope =
    R"({"full_attention": {"rope_type": "default", "rope_theta": 5e5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})";

inline constexpr Family kMixtureFamilies[] = {
    {.architecture = "Cohere2MoeForCausalLM",
     .model_type = "cohere2_moe",
     .names = &kCorrectedRouterNames,
     .keys = {.ffn = "prefix_dense_intermediate_size",
              .ffn_fallback = "intermediate_size",
              .epsilon = "layer_norm_eps"},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.norm = NormKind::kLayer, .is_parallel = true},
     .default_epsilon = 1e-5,
     .rms_epsilon_key = "rms_norm_eps",
     .has_norm_biases = false,
     .parallel_norms = ParallelNorms::kOne,
     .experts = ExpertRule::kByType,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 8,
     .default_experts_used = 2,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .route_score_key = "expert_selection_fn",
     .dense_layers_key = "first_k_dense_replace",
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "num_shared_experts",
     .shared_sum_key = "shared_expert_combination_strategy",
     .window = WindowRule::kPattern,
     .default_window = 4096,
     .default_pattern = 4,
     .has_pattern_key = true,
     .prefix_pattern_key = "prefix_dense_sliding_window_pattern",
     .rope = RopeRule::kWindowedOrDense,
     .rotates_neighbours = true,
     .default_logit_scale = 0.0625,
     .default_head_dim = 128,
     .default_max_context = 8192,
     .default_tied = true,
     .required = {{"rope_scaling", "null"}},
     .ignored_keys = {"position_embedding_type", "layer_switch", "order_of_interleaved_layers",
                      "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                      "use_parallel_embedding"}},
    {.architecture = "MiniMaxM2ForCausalLM",
     .model_type = "minimax_m2",
     .names = &kCorrectedBlockExpertNames,
     .layer = {.route_score = RouteScore::kSigmoid},
     .qk_norm = QkNorm::kAllHeads,
     .experts = ExpertRule::kEveryLayer,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 256,
     .default_experts_used = 8,
     .always_norms_topk = true,
     .has_router_correction = true,
     .default_theta = 5000000.0,
     .has_partial_rotary = true,
     .default_head_dim = 128,
     .default_kv_heads = 8,
     .default_max_context = 196608},
    {.architecture = "AriaTextForCausalLM",
     .model_type = "aria_text",
     .names = &kExpertsByColumnsNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .experts = ExpertRule::kEveryLayer,
     .experts_key = "moe_num_experts",
     .experts_alias = nullptr,
     .experts_used_key = "moe_topk",
     .expert_ffn_key = "intermediate_size",
     .default_experts = 8,
     .default_experts_used = 2,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "moe_num_shared_experts",
     .default_shared_expert = 2,
     .has_expert_bias = false},
    {.architecture = "LagunaForCausalLM",
     .model_type = "laguna",
     .names = &kHeadGateExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.route_score = RouteScore::kSigmoid,
               .has_attention_gate = true,
               .has_head_gates = true},
     .qk_norm = QkNorm::kEachHead,
     .experts = ExpertRule::kByType,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 512,
     .default_experts = 256,
     .default_experts_used = 8,
     .always_norms_topk = true,
     .default_dense_layers = 1,
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "shared_expert_intermediate_size",
     .default_shared_expert = 512,
     .has_router_correction = true,
     .has_routed_factor = true,
     .routed_factor_key = "moe_routed_scaling_factor",
     .layer_heads_key = "num_attention_heads_per_layer",
     .window = WindowRule::kNamedLayers,
     .default_window = 512,
     .rope = RopeRule::kByType,
     .has_partial_rotary = true,
     .default_rope = kLagunaRope,
     .default_head_dim = 128,
     .default_kv_heads = 8,
     .default_max_context = 131072,
     .required = {{"moe_apply_router_weight_on_input", "false"},
                  {"moe_router_logit_softcapping", "0.0"}},
     .ignored_keys = {"gating", "gating_types", "decoder_sparse_step", "mlp_only_layers",
                      "norm_topk_prob"}},
    WithCorrectedExperts({.architecture = "ExaoneMoeForCausalLM",
                          .model_type = "exaone_moe",
                          .names = &kExaoneExpertNames,
                          .default_epsilon = 1e-5,
                          .qk_norm = QkNorm::kEachHead,
                          .experts = ExpertRule::kByType,
                          .experts_key = "num_experts",
                          .experts_alias = nullptr,
                          .default_expert_ffn = 1024,
                          .default_experts = 64,
                          .default_experts_used = 8,
                          .default_norm_topk_prob = true,
                          .dense_layers_key = "first_k_dense_replace",
                          .default_dense_layers = 1,
                          .shared_expert_key = "num_shared_experts",
                          .default_shared_expert = 1,
                          .default_routed_factor = 2.5,
                          .window = WindowRule::kPattern,
                          .default_window = 4096,
                          .default_pattern = 4,
                          .has_pattern_key = true,
                          .rope = RopeRule::kWindowed,
                          .default_kv_heads = 32}),
    WithCorrectedExperts({.architecture = "Dots1ForCausalLM",
                          .model_type = "dots1",
                          .names = &kCorrectedRouterNames,
                          .qkv_bias = Bias::kByKey,
                          .attention_out_bias = Bias::kByKey,
                          .qk_norm = QkNorm::kEachHead,
                          .experts = ExpertRule::kAfterDense,
                          .experts_key = "n_routed_experts",
                          .experts_alias = "num_local_experts",
                          .default_expert_ffn = 1408,
                          .dense_layers_key = "first_k_dense_replace",
                          .shared_expert_key = "n_shared_experts",
                          .window = WindowRule::kLaterLayers,
                          .default_window = 4096,
                          .default_window_from = 62,
                          .default_kv_heads = 32}),
    WithCorrectedExperts(
        {.architecture = "SolarOpenForCausalLM",
         .model_type = "solar_open",
         .names = &kCorrectedRouterNames,
         .keys = {.ffn = nullptr},
         .qkv_bias = Bias::kByKey,
         .default_epsilon = 1e-5,
         .experts = ExpertRule::kEveryLayer,
         .experts_key = "n_routed_experts",
         .experts_alias = "num_local_experts",
         .default_expert_ffn = 1280,
         .default_experts = 128,
         .default_experts_used = 8,
         .default_norm_topk_prob = true,
         .shared_expert_key = "n_shared_experts",
         .default_shared_expert = 1,
         .default_theta = 1000000.0,
         .default_head_dim = 128,
         .default_kv_heads = 8,
         .default_max_context = 131072,
         .ignored_keys = {"intermediate_size", "first_k_dense_replace", "use_qk_norm"}}),
    {.architecture = "FlexOlmoForCausalLM",
     .model_type = "flex_olmo",
     .names = &kPostNormExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .qk_norm = QkNorm::kAllHeads,
     .experts = ExpertRule::kEveryLayer,
     .experts_key = "num_experts",
     .experts_alias = "num_local_experts",
     .expert_ffn_key = "intermediate_size",
     .default_experts = 7,
     .default_experts_used = 5,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_theta = 500000.0,
     .default_max_context = 4096},
    {.architecture = "AfmoeForCausalLM",
     .model_type = "afmoe",
     .names = &kGatedAttentionExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.route_score = RouteScore::kSigmoid,
               .topk_epsilon = 1e-20f,
               .has_attention_gate = true},
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kEachHead,
     .experts = ExpertRule::kAfterDense,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 1408,
     .default_experts = 64,
     .default_experts_used = 6,
     .always_norms_topk = true,
     .dense_layers_key = "num_dense_layers",
     .default_dense_layers = 1,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "num_shared_experts",
     .default_shared_expert = 2,
     .has_router_correction = true,
     .has_routed_factor = true,
     .routed_factor_key = "route_scale",
     .window = WindowRule::kPattern,
     .default_window = 1024,
     .default_pattern = 4,
     .has_pattern_key = true,
     .pattern_key = "global_attn_every_n_layers",
     .rope = RopeRule::kOnlyWindowed,
     .scales_embedding_key = "mup_enabled",
     .default_head_dim = 128,
     .default_max_context = 16384,
     .ignored_keys = {"n_group", "topk_group", "num_expert_groups", "num_limited_groups",
                      "score_func", "route_norm", "load_balance_coeff", "use_grouped_mm"}},
    {.architecture = "HYV3ForCausalLM",
     .model_type = "hy_v3",
     .names = &kHyExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .layer = {.route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-20f},
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kEachHead,
     .experts = ExpertRule::kByType,
     .experts_key = "num_experts",
     .experts_alias = "num_local_experts",
     .default_expert_ffn = 1536,
     .default_experts = 192,
     .default_experts_used = 8,
     .always_norms_topk = true,
     .default_dense_layers = 1,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "num_shared_experts",
     .default_shared_expert = 1,
     .has_router_correction = true,
     .has_routed_factor = true,
     .routed_factor_key = "router_scaling_factor",
     .default_routed_factor = 2.826,
     .has_expert_bias = false,
     .default_theta = 11158840.0,
     .default_head_dim = 128,
     .default_kv_heads = 8,
     .default_max_context = 131072,
     .ignored_keys = {"enable_moe_fp32_combine"}},
    {.architecture = "MellumForCausalLM",
     .model_type = "mellum",
     .names = &kExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .qk_norm = QkNorm::kEachHead,
     .experts = ExpertRule::kByType,
     .experts_key = "num_experts",
     .experts_alias = "num_local_experts",
     .default_expert_ffn = 896,
     .default_experts = 64,
     .default_experts_used = 8,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .window = WindowRule::kNamedLayers,
     .default_window = 1024,
     .rope = RopeRule::kByType,
     .default_rope = kMellumRope,
     .default_head_dim = 128,
     .default_kv_heads = 4,
     .default_max_context = 131072},
    {.architecture = "HunYuanMoEV1ForCausalLM",
     .model_type = "hunyuan_v1_moe",
     .names = &kQueryNormExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.qk_norm_follows_rope = true},
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kEachHead,
     .experts = ExpertRule::kEveryLayer,
     .experts_key = "num_experts",
     .experts_alias = "num_local_experts",
     .experts_used_key = "moe_topk",
     .experts_used_alias = "num_experts_per_tok",
     .expert_ffn_key = "intermediate_size",
     .default_experts = 1,
     .default_experts_used = 1,
     .shared_expert = SharedExpert::kOne,
     .has_rope_alpha = true,
     .ignored_keys = {"use_qk_norm", "use_cla", "cla_share_factor", "norm_type",
                      "attention_head_dim", "norm_topk_prob", "moe_intermediate_size",
                      "num_shared_expert", "use_mixed_mlp_moe", "moe_layer_num_skipped",
                      "moe_drop_tokens", "moe_random_routing_dropped_token", "group_limited_greedy",
                      "org_vocab_size", "n_group", "topk_group"}},
    {.architecture = "OlmoeForCausalLM",
     .model_type = "olmoe",
     .names = &kExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kAllHeads,
     .experts = ExpertRule::kEveryLayer,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 64,
     .default_experts_used = 8,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_max_context = 4096},
    {.architecture = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .names = &kGatedSharedExpertNames,
     .qkv_bias = Bias::kByKey,
     .bias_key = "qkv_bias",
     .default_bias = true,
     .experts = ExpertRule::kSparseStep,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 1408,
     .default_experts = 60,
     .default_experts_used = 4,
     .norm_topk_prob_key = "norm_topk_prob",
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "shared_expert_intermediate_size",
     .default_shared_expert = 5632,
     .has_shared_gate = true,
     .window = WindowRule::kLayerTypes,
     .default_window = 4096,
     .default_kv_heads = 16,
     .default_max_context = 32768},
    {.architecture = "GraniteMoeForCausalLM",
     .model_type = "granitemoe",
     .names = &kExpertsByRowsNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .experts = ExpertRule::kEveryLayer,
     .experts_alias = nullptr,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 8,
     .default_experts_used = 2,
     .scale = ScaleRule::kMultiplier,
     .has_multipliers = true},
    {.architecture = "GraniteMoeSharedForCausalLM",
     .model_type = "granitemoeshared",
     .names = &kExpertsByRowsNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .experts = ExpertRule::kEveryLayer,
     .experts_alias = nullptr,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 8,
     .default_experts_used = 2,
     .shared_expert = SharedExpert::kWidth,
     .shared_expert_key = "shared_intermediate_size",
     .scale = ScaleRule::kMultiplier,
     .has_multipliers = true},
    {.architecture = "Lfm2MoeForCausalLM",
     .model_type = "lfm2_moe",
     .names = &kShortConvolutionExpertNames,
     .keys = {.epsilon = "norm_eps", .activation = nullptr},
     .layer = {.route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-6f},
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kEachHead,
     .mixer = MixerRule::kConvByLayer,
     .experts = ExpertRule::kAfterDense,
     .experts_key = "num_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 1792,
     .default_experts = 32,
     .default_experts_used = 4,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .dense_layers_key = "num_dense_layers",
     .default_dense_layers = 2,
     .has_router_correction = true,
     .correction_key = "use_expert_bias",
     .has_routed_factor = true,
     .default_theta = 1000000.0,
     .default_kv_heads = 8,
     .default_max_context = 128000,
     .default_tied = true,
     .tied_key = "tie_embedding"},
    {.architecture = "Ernie4_5_MoeForCausalLM",
     .model_type = "ernie4_5_moe",
     .names = &kRouterStatisticsNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .bias_key = "use_bias",
     .mlp_bias_key = "use_bias",
     .head_bias_key = "use_bias",
     .default_epsilon = 1e-5,
     .experts = ExpertRule::kInterval,
     .experts_key = "moe_num_experts",
     .experts_used_key = "moe_k",
     .experts_used_alias = "num_experts_per_tok",
     .default_expert_ffn = 1536,
     .default_experts = 64,
     .default_experts_used = 6,
     .topk_least_key = "moe_norm_min",
     .default_topk_least = 1e-12,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "moe_num_shared_experts",
     .default_shared_expert = 2,
     .has_router_correction = true,
     .has_expert_bias = false,
     .rotates_neighbours = true,
     .default_theta = 500000.0,
     .default_kv_heads = 4,
     .default_max_context = 131072,
     .default_tied = true,
     .older_architecture = "Ernie4_5_MoEForCausalLM",
     .ignored_keys = {"moe_capacity", "moe_gate", "moe_use_aux_free", "use_rmsnorm"}},
    {.architecture = "Glm4MoeForCausalLM",
     .model_type = "glm4_moe",
     .names = &kCorrectedRouterNames,
     .qkv_bias = Bias::kByKey,
     .layer = {.route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-20f},
     .default_epsilon = 1e-5,
     .qk_norm = QkNorm::kEachHeadIfUsed,
     .experts = ExpertRule::kAfterDense,
     .experts_key = "n_routed_experts",
     .experts_alias = "num_local_experts",
     .default_expert_ffn = 1408,
     .default_experts = 128,
     .default_experts_used = 8,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .dense_layers_key = "first_k_dense_replace",
     .default_dense_layers = 1,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "n_shared_experts",
     .default_shared_expert = 1,
     .has_router_correction = true,
     .has_router_groups = true,
     .default_router_groups = 1,
     .default_router_groups_used = 1,
     .has_routed_factor = true,
     .has_partial_rotary = true,
     .default_partial_rotary = 0.5,
     .default_kv_heads = 8,
     .default_max_context = 131072},
    {.architecture = "PhimoeForCausalLM",
     .model_type = "phimoe",
     .names = &kBlockExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .head_bias_key = "lm_head_bias",
     .layer = {.norm = NormKind::kLayer, .route_score = RouteScore::kSparseMixer},
     .default_epsilon = 1e-5,
     .experts = ExpertRule::kEveryLayer,
     .experts_alias = nullptr,
     .expert_ffn_key = "intermediate_size",
     .default_experts = 16,
     .default_experts_used = 2,
     .window = WindowRule::kEveryLayer,
     .default_theta = 1000000.0,
     .has_longrope_only = true,
     .has_rope_mscales = true,
     .ignores_outer_original = true,
     .default_kv_heads = 8,
     .default_max_context = 131072,
     .ignored_keys = {"input_jitter_noise"}},
};

}  // namespace arn::convert
