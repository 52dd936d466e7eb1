// Rows of families with latent attention, for family_table.cc, and their tensor names.
#pragma once

#include "converter/family/family.h"
#include "converter/family/mixture_families.h"

namespace arn::convert {

constexpr TensorNames WithLatentAttention(TensorNames names) {
  names.q_norm = names.k_norm = names.k = names.v = nullptr;
  names.q_low = "model.layers.{}.self_attn.q_a_proj";
  names.q_low_norm = "model.layers.{}.self_attn.q_a_layernorm";
  names.q_up = "model.layers.{}.self_attn.q_b_proj";
  names.latent = "model.layers.{}.self_attn.kv_a_proj_with_mqa";
  names.latent_norm = "model.layers.{}.self_attn.kv_a_layernorm";
  names.latent_up = "model.layers.{}.self_attn.kv_b_proj";
  return names;
}
inline constexpr TensorNames kLatentNames = WithLatentAttention(kDecoderNames);
inline constexpr TensorNames kLatentExpertMtpNames =
    AsNextLayer(WithLatentAttention(WithCorrectedRouter()));
inline constexpr TensorNames kLatentExpertNames =
    WithMtp(WithLatentAttention(WithCorrectedRouter()), &kLatentExpertMtpNames);

inline constexpr LatentFamily kDeepseek2Latent = {.kv_rank = 512,
                                                  .query_rank = 1536,
                                                  .key_dim = 128,
                                                  .rotary_dim = 64,
                                                  .value_dim = 128,
                                                  .pairs = LatentPairs::kNeighbours,
                                                  .scales_by_rope = false};
inline constexpr LatentFamily kDeepseek3Latent = {
    .kv_rank = 512, .query_rank = 1536, .key_dim = 128, .rotary_dim = 64, .value_dim = 128};
inline constexpr LatentFamily kGlmLatent = {
    .kv_rank = 512, .query_rank = 768, .key_dim = 192, .rotary_dim = 64, .value_dim = 256};

inline constexpr LatentFamily kMistralLatent = {.kv_rank = 256,
                                                .query_rank = 1024,
                                                .key_dim = 64,
                                                .rotary_dim = 64,
                                                .value_dim = 128,
                                                .scales_by_rope = false,
                                                .has_whole_heads = true};

inline constexpr LatentFamily kMiniCpmLatent = {.kv_rank = 256,
                                                .query_rank = 768,
                                                .key_dim = 64,
                                                .rotary_dim = 32,
                                                .value_dim = 0,
                                                .pairs = LatentPairs::kHalves};

inline constexpr const char* kMistralLatentRope =
    R"({"rope_type": "yarn", "rope_theta": 1e4, "factor": 128.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
        "original_max_position_embeddings": 8192})";

constexpr TensorNames WithIndexer(TensorNames names) {
  names.unused_in_layers = "model.layers.{}.self_attn.indexer.";
  return names;
}
inline constexpr TensorNames kIndexedLatentMtpNames = WithIndexer(kLatentExpertMtpNames);
inline constexpr TensorNames kIndexedLatentNames =
    WithMtp(WithIndexer(kLatentExpertNames), &kIndexedLatentMtpNames);

inline constexpr LatentFamily kIndexedLatent = {.kv_rank = 512,
                                                .query_rank = 1536,
                                                .key_dim = 128,
                                                .rotary_dim = 64,
                                                .value_dim = 128,
                                                .pairs = LatentPairs::kNeighbours};
inline constexpr LatentFamily kGlmIndexedLatent = {.kv_rank = 512,
                                                   .query_rank = 2048,
                                                   .key_dim = 192,
                                                   .rotary_dim = 64,
                                                   .value_dim = 256,
                                                   .pairs = LatentPairs::kNeighbours};

// DeepSeek-V3 whose layers attend to tokens that an indexer chooses.
constexpr Family Indexed(const char* architecture, const char* model_type,
                         const LatentFamily* latent) {
  Family family = {
      .architecture = architecture, .model_type = model_type, .names = &kIndexedLatentNames};
  family.qkv_bias = family.attention_out_bias = Bias::kByKey;
  family.layer = {.route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-20f};
  family.latent = latent;
  family.experts = ExpertRule::kByType;
  family.experts_key = "n_routed_experts";
  family.experts_alias = nullptr;
  family.experts_copy_key = "num_experts";
  family.default_expert_ffn = 2048;
  family.default_experts = 256;
  family.default_experts_used = 8;
  family.norm_topk_prob_key = "norm_topk_prob";
  family.default_norm_topk_prob = true;
  family.dense_layers_key = "first_k_dense_replace";
  family.default_dense_layers = 3;
  family.shared_expert = SharedExpert::kCount;
  family.shared_expert_key = "n_shared_experts";
  family.default_shared_expert = 1;
  family.has_router_correction = true;
  family.has_router_groups = true;
  family.default_router_groups = 8;
  family.default_router_groups_used = 4;
  family.has_routed_factor = true;
  family.default_routed_factor = 2.5;
  family.default_kv_heads = 128;
  family.default_max_context = 163840;
  family.sparse_tokens_key = "index_topk";
  family.default_sparse_tokens = 2048;
  family.only_layer_type = "deepseek_sparse_attention";
  constexpr const char* kIgnored[] = {"aux_loss_alpha", "seq_aux",        "ep_size",
                                      "scoring_func",   "moe_layer_freq", "topk_method"};
  size_t n = 0;
  for (const char* key : kIgnored) family.ignored_keys[n++] = key;
  return family;
}

constexpr Family GlmIndexed() {
  Family family = Indexed("GlmMoeDsaForCausalLM", "glm_moe_dsa", &kGlmIndexedLatent);
  family.experts_alias = "num_local_experts";
  family.experts_copy_key = nullptr;
  family.ignored_keys[6] = "num_experts";
  family.default_epsilon = 1e-5;
  family.default_router_groups = family.default_router_groups_used = 1;
  family.default_kv_heads = 64;
  family.default_max_context = 202752;
  return family;
}

inline constexpr Family kLatentFamilies[] = {
    Indexed("DeepseekV32ForCausalLM", "deepseek_v32", &kIndexedLatent),
    GlmIndexed(),
    {.architecture = "Mistral4ForCausalLM",
     .model_type = "mistral4",
     .names = &kLatentExpertNames,
     .sizes = {.vocab = 131072, .hidden = 4096, .layers = 36, .heads = 32, .ffn = 12288},
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.topk_epsilon = 1e-20f},
     .latent = &kMistralLatent,
     .experts = ExpertRule::kAfterDense,
     .experts_key = "n_routed_experts",
     .experts_alias = "num_local_experts",
     .default_expert_ffn = 2048,
     .default_experts = 128,
     .default_experts_used = 4,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .dense_layers_key = "first_k_dense_replace",
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "n_shared_experts",
     .default_shared_expert = 1,
     .has_router_groups = true,
     .default_router_groups = 1,
     .default_router_groups_used = 1,
     .has_routed_factor = true,
     .default_rope = kMistralLatentRope,
     .has_rope_temperature = true,
     .default_kv_heads = 32,
     .default_max_context = 1048576},
    {.architecture = "DeepseekV2ForCausalLM",
     .model_type = "deepseek_v2",
     .names = &kLatentExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .latent = &kDeepseek2Latent,
     .experts = ExpertRule::kAfterDense,
     .experts_key = "n_routed_experts",
     .experts_alias = nullptr,
     .default_expert_ffn = 1407,
     .default_experts = 64,
     .has_topk_method = true,
     .norm_topk_prob_key = "",
     .dense_layers_key = "first_k_dense_replace",
     .default_dense_layers = 0,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "n_shared_experts",
     .default_shared_expert = 2,
     .has_routed_factor = true,
     .has_expert_bias = false,
     .default_max_context = 2048,
     .ignored_keys = {"norm_topk_prob", "n_group", "topk_group", "aux_loss_alpha", "seq_aux",
                      "ep_size", "scoring_func", "moe_layer_freq"}},
    {.architecture = "DeepseekV3ForCausalLM",
     .model_type = "deepseek_v3",
     .names = &kLatentExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-20f},
     .latent = &kDeepseek3Latent,
     .experts = ExpertRule::kAfterDense,
     .experts_key = "n_routed_experts",
     .experts_alias = "num_local_experts",
     .default_expert_ffn = 2048,
     .default_experts = 256,
     .default_experts_used = 8,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .dense_layers_key = "first_k_dense_replace",
     .default_dense_layers = 3,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "n_shared_experts",
     .default_shared_expert = 1,
     .has_router_correction = true,
     .has_router_groups = true,
     .default_router_groups = 8,
     .default_router_groups_used = 4,
     .has_routed_factor = true,
     .default_routed_factor = 2.5,
     .default_kv_heads = 128,
     .default_max_context = 4096,
     .ignored_keys = {"aux_loss_alpha", "seq_aux", "ep_size", "scoring_func", "moe_layer_freq",
                      "topk_method"}},
    {.architecture = "Glm4MoeLiteForCausalLM",
     .model_type = "glm4_moe_lite",
     .names = &kLatentExpertNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .layer = {.route_score = RouteScore::kSigmoid, .topk_epsilon = 1e-20f},
     .default_epsilon = 1e-5,
     .latent = &kGlmLatent,
     .experts = ExpertRule::kByType,
     .experts_key = "n_routed_experts",
     .experts_alias = "num_local_experts",
     .default_expert_ffn = 1536,
     .default_experts = 64,
     .default_experts_used = 4,
     .norm_topk_prob_key = "norm_topk_prob",
     .default_norm_topk_prob = true,
     .default_dense_layers = 1,
     .shared_expert = SharedExpert::kCount,
     .shared_expert_key = "n_shared_experts",
     .default_shared_expert = 1,
     .has_router_correction = true,
     .has_router_groups = true,
     .default_router_groups = 1,
     .default_router_groups_used = 1,
     .has_routed_factor = true,
     .default_routed_factor = 1.8,
     .default_kv_heads = 20,
     .default_max_context = 202752,
     .ignored_keys = {"first_k_dense_replace", "topk_method", "scoring_func"}},
    {.architecture = "YoutuForCausalLM",
     .model_type = "youtu",
     .names = &kLatentNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .latent = &kDeepseek3Latent,
     .default_kv_heads = 16,
     .default_max_context = 131072,
     .default_tied = true,
     // YoutuPreTrainedModel._init_weights zeroes it after a checkpoint is loaded, too.
     .zeroes_padding_row = true},
    // transformers 5.13; earlier the code beside the checkpoint.
    {.architecture = "MiniCPM3ForCausalLM",
     .model_type = "minicpm3",
     .names = &kLatentNames,
     .qkv_bias = Bias::kByKey,
     .attention_out_bias = Bias::kByKey,
     .mlp_bias = Bias::kByKey,
     .latent = &kMiniCpmLatent,
     .has_depth_factors = true,
     .default_kv_heads = 40,
     .default_tied = true,
     .needed_keys = {"rms_norm_eps", "max_position_embeddings", "scale_emb", "scale_depth",
                     "dim_model_base"}},
};

}  // namespace arn::convert
