// Families whose tensors llama.cpp's converter not only renames. The checkpoints are those of the
// golden cases, without what GGUF files cannot express. Folder and file must give the same bundle.
#include <cmath>

#include "tests/unit/converter/gguf/gguf_family_fixture.h"

namespace arn::convert {
namespace {

// The file stores norms with the 1 added.
TEST_F(GgufFamilyTest, Gemma) {
  Load("scaled_embedding");
  WriteFolder();
  GgufWriter writer = Sizes("gemma", {{"block_count", 3},
                                      {"context_length", 256},
                                      {"embedding_length", 64},
                                      {"feed_forward_length", 172},
                                      {"attention.head_count", 4},
                                      {"attention.head_count_kv", 1},
                                      {"attention.key_length", 24},
                                      {"attention.value_length", 24}});
  for (auto& [name, tensor] : tensors_) {
    if (name.find("norm.weight") == std::string::npos) continue;
    std::vector<float> values = Floats(tensor);
    for (float& v : values) v += 1.0f;
    tensor.bytes = test::EncodeFloats(values, "F32");
  }
  AddRest(kUsual, &writer);
  ExpectSame(writer, "");
}

// Experts with biases and separate gate and up; attention sinks; every second layer has a window.
TEST_F(GgufFamilyTest, GptOss) {
  Load("sinks");
  WriteFolder();
  GgufWriter writer = Sizes("gpt-oss", {{"block_count", 3},
                                        {"context_length", 256},
                                        {"embedding_length", 64},
                                        {"feed_forward_length", 52},
                                        {"attention.head_count", 4},
                                        {"attention.head_count_kv", 2},
                                        {"attention.key_length", 16},
                                        {"attention.value_length", 16},
                                        {"attention.sliding_window", 9},
                                        {"expert_count", 5},
                                        {"expert_used_count", 2},
                                        {"expert_feed_forward_length", 52},
                                        {"rope.scaling.original_context_length", 32}});
  writer.Float("gpt-oss.rope.freq_base", 150000.0f);
  writer.String("gpt-oss.rope.scaling.type", "yarn");
  writer.Float("gpt-oss.rope.scaling.factor", 4.0f);
  writer.Float("gpt-oss.rope.scaling.yarn_beta_fast", 32.0f);
  writer.Float("gpt-oss.rope.scaling.yarn_beta_slow", 1.0f);
  writer.Bool("gpt-oss.rope.scaling.yarn_truncate", false);
  for (int i = 0; i < 3; ++i) {
    const std::string from = "model.layers." + std::to_string(i) + ".mlp.experts.";
    const std::string to = "blk." + std::to_string(i) + ".";
    PutExperts(from, to, true, &writer);
    TinyTensor both, down;
    Take(from + "gate_up_proj_bias", &both);
    Take(from + "down_proj_bias", &down);
    const std::vector<float> values = Floats(both);
    std::vector<float> gate, up;
    for (size_t k = 0; k < values.size(); ++k) (k % 2 == 0 ? gate : up).push_back(values[k]);
    Put(to + "ffn_gate_exps.bias", {"F32", {5, 52}, test::EncodeFloats(gate, "F32")}, &writer);
    Put(to + "ffn_up_exps.bias", {"F32", {5, 52}, test::EncodeFloats(up, "F32")}, &writer);
    Put(to + "ffn_down_exps.bias", down, &writer);
  }
  Renames renames = {{"post_attention_layernorm", "post_attention_norm"},
                     {"self_attn.sinks", "attn_sinks.weight"},
                     {"mlp.router", "ffn_gate_inp"}};
  renames.insert(renames.end(), kUsual.begin(), kUsual.end());
  AddRest(renames, &writer);
  ExpectSame(writer, "with windows in every second layer");
}

// Experts in every second layer, one of them shared; the fourth layer has no RoPE.
TEST_F(GgufFamilyTest, Llama4) {
  Load("chunks");
  TinyTensors layers;
  for (const auto& [name, tensor] : tensors_) {
    const bool is_dense = name.find("layers.0.") != std::string::npos;
    const bool has_experts = name.find("layers.1.") != std::string::npos;
    const bool is_other = name.find("layers.") == std::string::npos;
    if (is_other || is_dense || has_experts) layers[name] = tensor;
    if (is_dense) layers[Replaced(name, "layers.0.", "layers.2.")] = tensor;
    if (has_experts) layers[Replaced(name, "layers.1.", "layers.3.")] = tensor;
  }
  tensors_ = std::move(layers);
  for (const char* key : {"no_rope_layers", "layer_types", "moe_layers"}) config_.erase(key);
  config_["num_hidden_layers"] = 4;
  config_["interleave_moe_layer_step"] = 2;
  config_["attention_chunk_size"] = config_["floor_scale"] = 8192;
  config_["attn_scale"] = 0.1;
  WriteFolder();
  GgufWriter writer = Sizes("llama4", {{"block_count", 4},
                                       {"context_length", 256},
                                       {"embedding_length", 64},
                                       {"feed_forward_length", 172},
                                       {"attention.head_count", 4},
                                       {"attention.head_count_kv", 2},
                                       {"attention.key_length", 16},
                                       {"attention.value_length", 16},
                                       {"rope.dimension_count", 16},
                                       {"expert_count", 3},
                                       {"expert_used_count", 2},
                                       {"interleave_moe_layer_step", 2},
                                       {"expert_feed_forward_length", 52}});
  writer.Float("llama4.rope.freq_base", 500000.0f);
  for (const int i : {1, 3}) {
    PutExperts("model.layers." + std::to_string(i) + ".feed_forward.experts.",
               "blk." + std::to_string(i) + ".", false, &writer);
  }
  Renames renames = {{"feed_forward.router", "ffn_gate_inp"},
                     {"feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"},
                     {"feed_forward.shared_expert.up_proj", "ffn_up_shexp"},
                     {"feed_forward.shared_expert.down_proj", "ffn_down_shexp"},
                     {"feed_forward.", "mlp."}};
  renames.insert(renames.end(), kUsual.begin(), kUsual.end());
  AddRest(renames, &writer);
  ExpectSame(writer, "with chunks of 8192");
}

// Convolutions without the middle dimension; kv heads of 0 mark layers without attention.
TEST_F(GgufFamilyTest, Lfm2) {
  Load("short_convolutions");
  WriteFolder();
  GgufWriter writer = Sizes("lfm2", {{"block_count", 4},
                                     {"context_length", 256},
                                     {"embedding_length", 64},
                                     {"feed_forward_length", 160},
                                     {"attention.head_count", 4},
                                     {"shortconv.l_cache", 4},
                                     {"vocab_size", 509}});
  writer.Ints("lfm2.attention.head_count_kv", {0, 2, 0, 0});
  writer.Float("lfm2.rope.freq_base", 1000000.0f);
  for (auto& [name, tensor] : tensors_) {
    if (tensor.shape.size() == 3) tensor.shape.erase(tensor.shape.begin() + 1);
  }
  Renames renames = {{"model.embedding_norm", "token_embd_norm"},
                     {"operator_norm", "attn_norm"},
                     {"self_attn.q_layernorm", "attn_q_norm"},
                     {"self_attn.k_layernorm", "attn_k_norm"},
                     {"self_attn.out_proj", "attn_output"},
                     {"feed_forward.w1", "ffn_gate"},
                     {"feed_forward.w3", "ffn_up"},
                     {"feed_forward.w2", "ffn_down"},
                     {".conv.", ".shortconv."}};
  renames.insert(renames.end(), kUsual.begin(), kUsual.end());
  AddRest(renames, &writer);
  ExpectSame(writer, "");
}

// The file stores decay rates, not their logarithms.
TEST_F(GgufFamilyTest, Mamba) {
  Load("scan");
  WriteFolder();
  GgufWriter writer = Sizes("mamba", {{"block_count", 3},
                                      {"context_length", 1048576},
                                      {"embedding_length", 44},
                                      {"feed_forward_length", 0},
                                      {"attention.head_count", 0},
                                      {"ssm.conv_kernel", 3},
                                      {"ssm.inner_size", 132},
                                      {"ssm.state_size", 5},
                                      {"ssm.time_step_rank", 7}});
  writer.Bool("mamba.ssm.dt_b_c_rms", false);
  for (auto& [name, tensor] : tensors_) {
    if (tensor.shape.size() == 3) tensor.shape.erase(tensor.shape.begin() + 1);
    if (name.find("A_log") == std::string::npos) continue;
    std::vector<float> values = Floats(tensor);
    for (float& v : values) v = static_cast<float>(-std::exp(static_cast<double>(v)));
    tensor.bytes = test::EncodeFloats(values, "F32");
  }
  AddRest({{"backbone.layers.", "blk."},
           {"backbone.embeddings", "token_embd"},
           {"backbone.norm_f", "output_norm"},
           {".norm.", ".attn_norm."},
           {"mixer.A_log", "ssm_a"},
           {"mixer.D", "ssm_d"},
           {"mixer.conv1d", "ssm_conv1d"},
           {"mixer.dt_proj", "ssm_dt"},
           {"mixer.in_proj", "ssm_in"},
           {"mixer.out_proj", "ssm_out"},
           {"mixer.x_proj", "ssm_x"}},
          &writer);
  ExpectSame(writer, "");
}

// An encoder and a decoder, gated and not.
TEST_F(GgufFamilyTest, T5) {
  for (const char* name : {"encoder/relative_bias", "encoder/relative_bias_gated"}) {
    Load(name);
    config_["relative_attention_max_distance"] = 128;
    config_.erase("scale_decoder_outputs");
    config_["bos_token_id"] = 1;
    config_["eos_token_id"] = 2;
    WriteFolder();
    GgufWriter writer = Sizes("t5", {{"block_count", 2},
                                     {"decoder_block_count", 3},
                                     {"context_length", 512},
                                     {"embedding_length", 64},
                                     {"feed_forward_length", config_["d_ff"]},
                                     {"attention.head_count", 4},
                                     {"attention.key_length", 24},
                                     {"attention.value_length", 24},
                                     {"attention.relative_buckets_count", 8},
                                     {"decoder_start_token_id", 0}});
    writer.Float("t5.attention.layer_norm_epsilon", 1e-6f);
    AddRest({{"decoder.block.", "dec.blk."},
             {"encoder.block.", "enc.blk."},
             {"decoder.final_layer_norm", "dec.output_norm"},
             {"encoder.final_layer_norm", "enc.output_norm"},
             {"shared", "token_embd"},
             {"lm_head", "output"},
             {"layer.0.SelfAttention.relative_attention_bias", "attn_rel_b"},
             {"layer.0.SelfAttention.", "attn_"},
             {"layer.0.layer_norm", "attn_norm"},
             {"layer.1.EncDecAttention.", "cross_attn_"},
             {"enc.blk.0.layer.1.layer_norm", "enc.blk.0.ffn_norm"},
             {"enc.blk.1.layer.1.layer_norm", "enc.blk.1.ffn_norm"},
             {"layer.1.layer_norm", "cross_attn_norm"},
             {"layer.2.layer_norm", "ffn_norm"},
             {"layer.1.DenseReluDense.", "ffn_"},
             {"layer.2.DenseReluDense.", "ffn_"},
             {"ffn_wi_0", "ffn_gate"},
             {"ffn_wi_1", "ffn_up"},
             {"ffn_wi", "ffn_up"},
             {"ffn_wo", "ffn_down"}},
            &writer);
    ExpectSame(writer, "with a relative position bias up to distance 128");
  }
}

}  // namespace
}  // namespace arn::convert
