// Families of decoders in GGUF files. Folder and file of a golden case must give the same bundle.
#include <cmath>

#include "tests/unit/converter/gguf/gguf_decoder_fixture.h"

namespace arn::convert {
namespace {

TEST_F(GgufDecoderTest, Exaone4) {
  GgufWriter writer = LoadAs("windowed_layers_rotate", "exaone4");
  ReplaceRope({{"rope_type", "default"}, {"rope_theta", 1000000.0}});
  WriteFolder();
  writer.Bools("exaone4.attention.sliding_window_pattern", {true, true, false});
  AddAll(kPostNorms, &writer);
  ExpectSame(writer, "");
}

// Another row of the same name, because the file has a window.
TEST_F(GgufDecoderTest, Olmo3) {
  GgufWriter writer = LoadAs("post_norms_windows", "olmo2");
  WriteFolder();
  writer.Bools("olmo2.attention.sliding_window_pattern", {true, false, true});
  writer.String("olmo2.rope.scaling.type", "yarn");
  writer.Float("olmo2.rope.scaling.factor", 4.0f);
  writer.Float("olmo2.rope.scaling.yarn_attn_factor", 1.2f);
  writer.Uint("olmo2.rope.scaling.original_context_length", 64);
  AddAll(kPostNorms, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Ernie) {
  GgufWriter writer = LoadAs("rotated_neighbours", "ernie4_5");
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

// The base is stored scaled by alpha, rounded to f32.
TEST_F(GgufDecoderTest, HunYuan) {
  for (const char* golden : {"norms_after_rope", "norms_after_rope_experts"}) {
    const bool has_experts = std::string(golden) == "norms_after_rope_experts";
    GgufWriter writer = has_experts ? LoadAs(golden, "hunyuan-moe",
                                             {{"expert_used_count", 2},
                                              {"expert_shared_feed_forward_length", 44},
                                              {"expert_feed_forward_length", 44},
                                              {"expert_shared_count", 1}})
                                    : LoadAs(golden, "hunyuan-dense");
    const double dim = config_["head_dim"];
    config_["rope_parameters"]["alpha"] = 50.0;
    WriteFolder();
    writer.Float(arch_ + ".rope.freq_base",
                 static_cast<float>(10000.0 * std::pow(50.0, dim / (dim - 2.0))));
    writer.String(arch_ + ".rope.scaling.type", "none");
    writer.Float(arch_ + ".rope.scaling.factor", 1.0f);
    writer.Uint(arch_ + ".rope.scaling.original_context_length", 262144);
    StackExperts(&writer);
    AddAll({{"self_attn.query_layernorm", "attn_q_norm"},
            {"self_attn.key_layernorm", "attn_k_norm"},
            {"mlp.gate.wg", "ffn_gate_inp"},
            {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
            {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
            {"mlp.shared_mlp.down_proj", "ffn_down_shexp"}},
           &writer);
    ExpectSame(writer, "");
  }
}

TEST_F(GgufDecoderTest, Glm4) {
  GgufWriter writer = LoadAs("neighbours_sandwich", "glm4", {{"rope.dimension_count", 12}});
  WriteFolder();
  AddAll({{"post_self_attn_layernorm", "post_attention_norm"},
          {"post_mlp_layernorm", "post_ffw_norm"},
          {"mlp.gate_up_proj", "ffn_up"}},
         &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, CommandR) {
  GgufWriter writer = LoadAs("one_norm", "command-r");
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Cohere2) {
  GgufWriter writer = LoadAs("one_norm_windows", "cohere2", {{"rope.dimension_count", 16}});
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "with windows in all but every fourth layer");
}

// q, k and v have biases, the matrix behind them has none.
TEST_F(GgufDecoderTest, SeedOss) {
  GgufWriter writer = LoadAs("input_biases", "seed_oss");
  WriteFolder();
  AddAll({{"post_attention_layernorm", "post_attention_norm"}}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Arcee) {
  GgufWriter writer = LoadAs("relu_squared", "arcee", {{"rope.dimension_count", 20}});
  ReplaceRope({{"rope_type", "default"}, {"rope_theta", 10000.0}});
  WriteFolder();
  PairRows(20);
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

// No norm of the file has weights; q, k and v are clipped.
TEST_F(GgufDecoderTest, Olmo) {
  GgufWriter writer = LoadAs("plain_layer_norm", "olmo");
  config_["clip_qkv"] = 0.75;
  WriteFolder();
  writer.Float("olmo.attention.layer_norm_epsilon", 1e-5f);
  writer.Float("olmo.attention.clamp_kqv", 0.75f);
  PairRows(16);
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

// llama.cpp's converter reorders q and k rows, but not their biases.
TEST_F(GgufDecoderTest, OlmoWithBiases_IsRefused) {
  GgufWriter writer = LoadAs("clipped", "olmo");
  writer.Float("olmo.attention.layer_norm_epsilon", 1e-5f);
  AddAll({}, &writer);
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), HasSubstr("tensor blk.0.attn_q.bias: not supported for olmo"));
}

TEST_F(GgufDecoderTest, StableLm) {
  for (const bool is_parallel : {false, true}) {
    GgufWriter writer = LoadAs(is_parallel ? "gated_one_norm" : "gated_layer_norm", "stablelm",
                               {{"rope.dimension_count", 4}});
    WriteFolder();
    writer.Bool("stablelm.use_parallel_residual", is_parallel);
    AddAll({}, &writer);
    ExpectSame(writer, "");
  }
}

TEST_F(GgufDecoderTest, Phi2) {
  GgufWriter writer = LoadAs("head_bias", "phi2", {{"rope.dimension_count", 8}});
  WriteFolder();
  AddAll({{"model.final_layernorm", "output_norm"},
          {"self_attn.dense", "attn_output"},
          {"mlp.fc1", "ffn_up"},
          {"mlp.fc2", "ffn_down"}},
         &writer);
  ExpectSame(writer, "");
}

// The file stores norms with the 1 added, and their epsilon as RMSNorm's.
TEST_F(GgufDecoderTest, Nemotron) {
  GgufWriter writer = LoadAs("layer_norm_less_one", "nemotron", {{"rope.dimension_count", 12}});
  WriteFolder();
  for (auto& [name, tensor] : tensors_) {
    if (name.find("norm.weight") == std::string::npos) continue;
    std::vector<float> values = Floats(tensor);
    for (float& v : values) v += 1.0f;
    tensor.bytes = test::EncodeFloats(values, "F32");
  }
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Jais2) {
  GgufWriter writer = LoadAs("squared_layer_norm", "jais2");
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Bloom) {
  GgufWriter writer = LoadAs(
      "alibi", "bloom",
      {{"context_length", 2048}, {"feed_forward_length", 264}, {"attention.head_count_kv", 6}});
  WriteFolder();
  BlockRows("query_key_value", 6, 1, 11);
  AddRest({{"transformer.h.", "blk."},
           {"transformer.word_embeddings_layernorm", "token_embd_norm"},
           {"transformer.word_embeddings", "token_embd"},
           {"transformer.ln_f", "output_norm"},
           {"lm_head", "output"},
           {"input_layernorm", "attn_norm"},
           {"post_attention_layernorm", "ffn_norm"},
           {"self_attention.query_key_value", "attn_qkv"},
           {"self_attention.dense", "attn_output"},
           {"mlp.dense_h_to_4h", "ffn_up"},
           {"mlp.dense_4h_to_h", "ffn_down"}},
          &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Falcon) {
  GgufWriter writer = LoadAs("grouped_heads", "falcon",
                             {{"feed_forward_length", 256}, {"attention.head_count_kv", 2}});
  WriteFolder();
  writer.String("falcon.tensor_data_layout", "jploski");
  BlockRows("query_key_value", 2, 4, 8);
  AddRest({{"transformer.h.", "blk."},
           {"transformer.word_embeddings", "token_embd"},
           {"transformer.ln_f", "output_norm"},
           {"lm_head", "output"},
           {"ln_attn", "attn_norm_2"},
           {"ln_mlp", "attn_norm"},
           {"self_attention.query_key_value", "attn_qkv"},
           {"self_attention.dense", "attn_output"},
           {"mlp.dense_h_to_4h", "ffn_up"},
           {"mlp.dense_4h_to_h", "ffn_down"}},
          &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Ministral3) {
  GgufWriter writer =
      LoadAs("temperature_of_positions", "mistral3", {{"rope.dimension_count", 24}});
  config_["rope_parameters"]["mscale"] = 0.7;
  WriteFolder();
  writer.String("mistral3.rope.scaling.type", "yarn");
  writer.Float("mistral3.rope.scaling.factor", 4.0f);
  writer.Uint("mistral3.rope.scaling.original_context_length", 8);
  writer.Float("mistral3.rope.scaling.yarn_log_multiplier", 0.7f);
  writer.Float("mistral3.attention.temperature_scale", 0.4f);
  PairRows(24);
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, ChatGlm) {
  GgufWriter writer = LoadAs("neighbours_of_a_part", "chatglm", {{"rope.dimension_count", 12}});
  WriteFolder();
  AddAll({{"mlp.gate_up_proj", "ffn_up"}}, &writer);
  ExpectSame(writer, "made from a folder of GlmForCausalLM");
}

// One key and value head, behind those of the queries.
TEST_F(GgufDecoderTest, StarCoder) {
  GgufWriter writer = LoadAs("multi_query_positions", "starcoder",
                             {{"feed_forward_length", 256}, {"attention.head_count_kv", 1}});
  WriteFolder();
  AddRest({{"transformer.h.", "blk."},
           {"transformer.wte", "token_embd"},
           {"transformer.wpe", "position_embd"},
           {"transformer.ln_f", "output_norm"},
           {"ln_1", "attn_norm"},
           {"ln_2", "ffn_norm"},
           {"attn.c_attn", "attn_qkv"},
           {"attn.c_proj", "attn_output"},
           {"mlp.c_fc", "ffn_up"},
           {"mlp.c_proj", "ffn_down"}},
          &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Mpt) {
  GgufWriter writer = LoadAs("alibi_clipped", "mpt",
                             {{"block_count", 3},
                              {"context_length", 128},
                              {"embedding_length", 60},
                              {"feed_forward_length", 240},
                              {"attention.head_count", 5}});
  config_["attn_config"].erase("softmax_scale");
  WriteFolder();
  writer.Float("mpt.attention.clamp_kqv", 0.8f);
  writer.Float("mpt.attention.max_alibi_bias", 8.0f);
  AddRest({{"transformer.blocks.", "blk."},
           {"transformer.wte", "token_embd"},
           {"transformer.norm_f", "output_norm"},
           {"norm_1", "attn_norm"},
           {"norm_2", "ffn_norm"},
           {"attn.Wqkv", "attn_qkv"},
           {"attn.out_proj", "attn_output"},
           {"ffn.up_proj", "ffn_up"},
           {"ffn.down_proj", "ffn_down"}},
          &writer);
  ExpectSame(writer, "");
}

// The numbers of the activation are lists of the metadata.
TEST_F(GgufDecoderTest, Apertus) {
  GgufWriter writer = LoadAs("xielu", "apertus", {{"rope.dimension_count", 8}});
  ReplaceRope({{"rope_type", "default"}, {"rope_theta", 500000.0}});
  WriteFolder();
  for (const char* part : {"alpha_p", "alpha_n", "beta", "eps"}) {
    std::vector<float> numbers;
    for (int i = 0; i < 3; ++i) {
      TinyTensor number;
      Take("model.layers." + std::to_string(i) + ".mlp.act_fn." + part, &number);
      numbers.push_back(Floats(number)[0]);
    }
    writer.Floats(std::string("xielu.") + part, numbers);
  }
  AddAll({{"attention_layernorm", "attn_norm"},
          {"feedforward_layernorm", "ffn_norm"},
          {"self_attn.q_norm", "attn_q_norm"},
          {"self_attn.k_norm", "attn_k_norm"}},
         &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, WhatAScaledQueryNeeds_IsNamed) {
  GgufWriter writer =
      LoadAs("temperature_of_positions", "mistral3", {{"rope.dimension_count", 24}});
  writer.Float("mistral3.attention.temperature_scale", 0.4f);
  AddAll({}, &writer);
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), HasSubstr("mistral3.rope.scaling.type: expected yarn, found nothing"));
}

}  // namespace
}  // namespace arn::convert
