// Families with experts or latent attention in GGUF files. Folder and file of a golden case must
// give the same bundle.
#include "tests/unit/converter/gguf/gguf_decoder_fixture.h"

namespace arn::convert {
namespace {

// Experts behind a dense layer; the correction is a row.
TEST_F(GgufDecoderTest, ErnieExperts) {
  GgufWriter writer = LoadAs("router_statistics", "ernie4_5-moe",
                             {{"expert_count", 7},
                              {"expert_used_count", 3},
                              {"interleave_moe_layer_step", 1},
                              {"leading_dense_block_count", 1},
                              {"expert_shared_count", 2}});
  WriteFolder();
  StackExperts(&writer);
  AddAll(Joined({{"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"}}, kMixture),
         &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Olmoe) {
  GgufWriter writer = LoadAs("experts_all_head_norms", "olmoe");
  WriteFolder();
  StackExperts(&writer);
  AddAll(kMixture, &writer);
  ExpectSame(writer, "that are not normalised");
}

// The gate of the shared expert has lost its first dimension.
TEST_F(GgufDecoderTest, Qwen2Experts) {
  GgufWriter writer =
      LoadAs("shared_expert_gate", "qwen2moe", {{"expert_shared_feed_forward_length", 60}});
  WriteFolder();
  StackExperts(&writer);
  for (auto& [name, tensor] : tensors_) {
    if (name.find("shared_expert_gate") != std::string::npos)
      tensor.shape.erase(tensor.shape.begin());
  }
  AddAll(Joined({{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                 {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                 {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                 {"mlp.shared_expert.down_proj", "ffn_down_shexp"}},
                kMixture),
         &writer);
  ExpectSame(writer, "that are not normalised");
}

// gate and up of experts, and of the shared expert, become tensors of their own.
TEST_F(GgufDecoderTest, GraniteExperts) {
  for (const bool is_shared : {false, true}) {
    json keys = json::object();
    if (is_shared) keys["expert_shared_feed_forward_length"] = 44;
    GgufWriter writer =
        LoadAs(is_shared ? "experts_by_rows_shared" : "experts_by_rows", "granitemoe", keys);
    WriteFolder();
    writer.Float("granitemoe.attention.scale", config_["attention_multiplier"]);
    writer.Float("granitemoe.embedding_scale", config_["embedding_multiplier"]);
    writer.Float("granitemoe.residual_scale", config_["residual_multiplier"]);
    writer.Float("granitemoe.logit_scale", config_["logits_scaling"]);
    PairRows(16);
    for (uint32_t i = 0; i < BlockCount(); ++i) {
      const std::string from = "model.layers." + std::to_string(i) + ".";
      const std::string to = "blk." + std::to_string(i) + ".";
      SplitRows(from + "block_sparse_moe.input_linear.weight", to + "ffn_gate_exps.weight",
                to + "ffn_up_exps.weight", &writer);
      if (!is_shared) continue;
      SplitRows(from + "shared_mlp.input_linear.weight", to + "ffn_gate_shexp.weight",
                to + "ffn_up_shexp.weight", &writer);
    }
    AddAll({{"block_sparse_moe.output_linear", "ffn_down_exps"},
            {"block_sparse_moe.router.layer", "ffn_gate_inp"},
            {"shared_mlp.output_linear", "ffn_down_shexp"}},
           &writer);
    ExpectSame(writer, "");
  }
}

TEST_F(GgufDecoderTest, Dots1) {
  GgufWriter writer = LoadAs("later_windows_experts", "dots1", {{"attention.sliding_window", 0}});
  config_["sliding_window"] = nullptr;
  WriteFolder();
  StackExperts(&writer);
  AddAll(kMixture, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, ExaoneExperts) {
  GgufWriter writer = LoadAs("windowed_layers_rotate_experts", "exaone-moe",
                             {{"expert_shared_feed_forward_length", 56}});
  WriteFolder();
  writer.Bools("exaone-moe.attention.sliding_window_pattern", {true, true, false});
  StackExperts(&writer);
  AddAll(Joined({{"mlp.e_score_correction_bias", "exp_probs_b.bias"}}, kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Deepseek2) {
  GgufWriter writer = LoadLatent("latent_attention_greedy");
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(kLatent, kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Deepseek3) {
  GgufWriter writer = LoadLatent("latent_attention");
  AddLatentScaling(&writer);
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(kLatent, kMixture), &writer);
  ExpectSame(writer, "");
}

// The layer behind the last is a multi-token prediction head.
TEST_F(GgufDecoderTest, PredictionHead) {
  GgufWriter writer = LoadLatent("mtp/latent_attention");
  AddLatentScaling(&writer);
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(Joined(kNext, kLatent), kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, WhatContradictsLatentAttention_IsNamed) {
  struct Case {
    const char* key;
    uint32_t value;
    const char* error;
  };
  for (const Case& bad : {
           Case{"attention.head_count_kv", 4, "attention.head_count_kv: expected 1, found 4"},
           Case{"attention.key_length", 33, "attention.key_length: expected 32, found 33"},
           Case{"attention.key_length_mla", 8, "attention.key_length_mla: expected more than"},
           Case{"nextn_predict_layers", 3, "nextn_predict_layers: expected fewer than"},
           Case{"expert_group_count", 3, "expert_group_count: expected expert_group_used_count"},
           Case{"block_count", 4097, "block_count: expected at most 4096, found 4097"},
           Case{"attention.sliding_window", 9, "attention.sliding_window is 9"},
       }) {
    GgufWriter writer = LoadLatent("latent_attention_greedy", {{bad.key, bad.value}});
    StackExperts(&writer);
    SplitLatent(&writer);
    AddAll(Joined(kLatent, kMixture), &writer);
    WriteGguf(writer);
    EXPECT_THAT(GgufError(), HasSubstr(std::string("deepseek2.") + bad.error));
  }
}

// The layer behind the last is a multi-token prediction head.
TEST_F(GgufDecoderTest, Glm4Experts) {
  GgufWriter writer =
      LoadAs("mtp/router_groups", "glm4moe", {{"rope.dimension_count", 10}, {"block_count", 4}});
  WriteFolder();
  StackExperts(&writer);
  AddAll(Joined(Joined({{"post_attention_layernorm", "post_attention_norm"}}, kNext), kMixture),
         &writer);
  ExpectSame(writer, "");
}

// Files of several families have this name: the number of layers says whose they are.
TEST_F(GgufDecoderTest, Deepseek2OfGlm) {
  GgufWriter writer = LoadLatent("latent_attention_layer_types", {{"block_count", 47}});
  config_["num_hidden_layers"] = 47;
  config_["mlp_layer_types"] = json(47, "dense");
  config_["mlp_layer_types"][1] = "sparse";
  TinyTensors layers;
  for (const auto& [name, tensor] : tensors_) {
    if (name.find("layers.2.") != std::string::npos) continue;
    layers[name] = tensor;
    if (name.find("layers.0.") == std::string::npos) continue;
    for (int i = 2; i < 47; ++i) {
      layers[Replaced(name, "layers.0.", "layers." + std::to_string(i) + ".")] = tensor;
    }
  }
  tensors_ = std::move(layers);
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(kLatent, kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Deepseek2WithoutExperts) {
  GgufWriter writer = LoadLatent("latent_attention_halves", {{"leading_dense_block_count", 3},
                                                             {"expert_feed_forward_length", 172}});
  config_["rope_interleave"] = true;
  WriteFolder();
  SplitLatent(&writer);
  AddAll(kLatent, &writer);
  ExpectSame(writer, "");
}

// Keys and values are one matrix, and llama.cpp has the factors of the published size.
TEST_F(GgufDecoderTest, MiniCpm3) {
  for (const char* golden : {"latent_depth_factors", "latent_depth_factors_odd"}) {
    Load(golden);
    const uint32_t rotated = config_["qk_rope_head_dim"];
    json keys = {{"attention.kv_lora_rank", config_["kv_lora_rank"]},
                 {"attention.key_length", config_["qk_nope_head_dim"].get<uint32_t>() + rotated},
                 {"rope.dimension_count", rotated}};
    // llama.cpp's converter leaves it out if it is the width by the heads.
    if (config_.contains("v_head_dim")) keys["attention.value_length"] = config_["v_head_dim"];
    if (config_["q_lora_rank"].is_number()) keys["attention.q_lora_rank"] = config_["q_lora_rank"];
    GgufWriter writer = LoadAs(golden, "minicpm3", keys);
    config_.update({{"scale_emb", 12}, {"scale_depth", 1.4}, {"dim_model_base", 256}});
    json& rope = config_["rope_parameters"];
    if (rope.contains("short_factor")) {
      rope["original_max_position_embeddings"] = config_["max_position_embeddings"];
      for (const char* name : {"short", "long"}) {
        const std::vector<float> factors = rope[std::string(name) + "_factor"];
        writer.Tensor(std::string("rope_factors_") + name + ".weight", test::kGgufF32,
                      {factors.size()}, test::EncodeFloats(factors, "F32"));
      }
    }
    WriteFolder();
    AddAll(Joined({{"self_attn.kv_b_proj", "attn_kv_b"}}, kLatent), &writer);
    ExpectSame(writer, "with embeddings times 12");
  }
}

// Rotates a part of each head; the width of experts is that of the feed-forward block.
TEST_F(GgufDecoderTest, MiniMaxM2) {
  GgufWriter writer = LoadAs("all_head_norms_experts", "minimax-m2",
                             {{"rope.dimension_count", 12},
                              {"expert_feed_forward_length", 28},
                              {"expert_gating_func", 2}});
  WriteFolder();
  StackExperts(&writer, "block_sparse_moe.experts", {"w1", "w3", "w2"});
  AddAll(Joined({{"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
                 {"block_sparse_moe.gate.", "ffn_gate_inp."}},
                kMixture),
         &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Mellum) {
  GgufWriter writer = LoadAs("ropes_by_type_experts", "mellum");
  WriteFolder();
  writer.Bools("mellum.attention.sliding_window_pattern", {true, false, true});
  writer.Float("mellum.rope.freq_base", 500000.0f);
  writer.Float("mellum.rope.freq_base_swa", 10000.0f);
  writer.String("mellum.rope.scaling.type", "yarn");
  writer.Float("mellum.rope.scaling.factor", 4.0f);
  writer.Uint("mellum.rope.scaling.original_context_length", 64);
  StackExperts(&writer);
  AddAll(kMixture, &writer);
  ExpectSame(writer, "without RoPE scaling in layers with a window");
}

// Heads by layer, and windows in all but every fourth layer.
TEST_F(GgufDecoderTest, Laguna) {
  GgufWriter writer = LoadAs("head_gates_experts", "laguna",
                             {{"attention.head_count", {4, 6, 2, 4}},
                              {"expert_shared_feed_forward_length", 36},
                              {"expert_gating_func", 2},
                              {"leading_dense_block_count", 1},
                              {"rope.dimension_count", 8},
                              {"rope.dimension_count_swa", 16}});
  config_["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention",
                            "sliding_attention"};
  WriteFolder();
  writer.Float("laguna.expert_weights_scale", config_["moe_routed_scaling_factor"]);
  writer.Bool("laguna.expert_weights_norm", true);
  writer.Float("laguna.rope.freq_base", 500000.0f);
  writer.Float("laguna.rope.freq_base_swa", 10000.0f);
  writer.String("laguna.rope.scaling.type", "yarn");
  writer.Float("laguna.rope.scaling.factor", 4.0f);
  writer.Uint("laguna.rope.scaling.original_context_length", 64);
  StackExperts(&writer);
  AddAll(Joined({{"self_attn.g_proj", "attn_gate"},
                 {"mlp.experts.e_score_correction_bias", "exp_probs_b.bias"},
                 {"mlp.shared_expert.", "mlp.shared_experts."}},
                kMixture),
         &writer);
  ExpectSame(writer, "all but every fourth from the first on");
}

// LayerNorm with a softmax of the chosen experts, and RMSNorm with sigmoid routing.
TEST_F(GgufDecoderTest, Cohere2Experts) {
  for (const bool is_odd : {false, true}) {
    GgufWriter writer = LoadAs(is_odd ? "experts_parallel_odd" : "experts_parallel", "cohere2moe",
                               is_odd ? json{{"expert_feed_forward_length", 28},
                                             {"feed_forward_length", 28},
                                             {"expert_shared_feed_forward_length", 28},
                                             {"leading_dense_block_count", 2},
                                             {"rope.dimension_count", 18},
                                             {"expert_gating_func", 2}}
                                      : json{{"expert_feed_forward_length", 44},
                                             {"feed_forward_length", 76},
                                             {"expert_shared_feed_forward_length", 88},
                                             {"leading_dense_block_count", 1},
                                             {"rope.dimension_count", 16},
                                             {"expert_gating_func", 1}});
    // llama.cpp's converter refuses biases, and sums that are no averages.
    config_["attention_bias"] = false;
    config_["shared_expert_combination_strategy"] = "average";
    config_["prefix_dense_sliding_window_pattern"] = 1;
    std::erase_if(tensors_, [](const auto& item) { return item.first.ends_with(".bias"); });
    const std::vector<bool> windowed = is_odd
                                           ? std::vector<bool>{false, true, true, false, true, true}
                                           : std::vector<bool>{false, true, false, true, false};
    json types = json::array();
    for (const bool is : windowed) types.push_back(is ? "sliding_attention" : "full_attention");
    config_["layer_types"] = types;
    WriteFolder();
    writer.Bools("cohere2moe.attention.sliding_window_pattern", windowed);
    if (!is_odd) writer.Bool("cohere2moe.expert_weights_norm", true);
    if (is_odd) writer.Bool("cohere2moe.expert_weights_norm", false);
    StackExperts(&writer);
    AddAll(kMixture, &writer);
    ExpectSame(writer, "with RoPE in layers without experts");
  }
}

TEST_F(GgufDecoderTest, Afmoe) {
  GgufWriter writer = LoadAs("gated_attention_experts", "afmoe", {{"rope.dimension_count", 20}});
  config_.erase("layer_types");
  config_.erase("global_attn_every_n_layers");
  WriteFolder();
  writer.Float("afmoe.expert_weights_scale", config_["route_scale"]);
  StackExperts(&writer);
  AddAll(Joined({{"mlp.expert_bias", "exp_probs_b.bias"},
                 {"mlp.router.gate", "ffn_gate_inp"},
                 {"self_attn.gate_proj", "attn_gate"},
                 {"post_attention_layernorm", "post_attention_norm"},
                 {"pre_mlp_layernorm", "ffn_norm"},
                 {"post_mlp_layernorm", "post_ffw_norm"}},
                kMixture),
         &writer);
  ExpectSame(writer, "with windows in all but every fourth layer");
}

}  // namespace
}  // namespace arn::convert
