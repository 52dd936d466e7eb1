// Mamba and Mamba-2, with and without attention. Folder and file must give the same bundle.
#include "tests/unit/converter/gguf/gguf_hybrid_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class GgufMambaTest : public GgufHybridTest {
 protected:
  // Writes the epsilon and the factors, and changes the tensors of Mamba layers.
  void BeginMamba(const std::string& architecture, const json& numbers) {
    Begin(architecture, numbers);
    PutFloat("attention.layer_norm_rms_epsilon",
             config_.value("rms_norm_eps", config_.value("layer_norm_epsilon", 1e-5f)));
    NegateExponentials(".A_log");
    SqueezeConvolutions(".conv1d");
    if (architecture == "jamba") return;
    for (auto& [name, tensor] : tensors_) {
      if (name.ends_with(".A_log") || name.ends_with(".D")) tensor.shape = {tensor.shape[0], 1};
    }
  }
  void PutMultipliers() {
    PutFloat("attention.scale", config_.at("attention_multiplier"));
    PutFloat("embedding_scale", config_.at("embedding_multiplier"));
    PutFloat("residual_scale", config_.at("residual_multiplier"));
    PutFloat("logit_scale", config_.at("logits_scaling"));
  }
  void SplitNorms(const std::string& part, uint64_t groups) {
    for (auto& [name, tensor] : tensors_) {
      if (name.find(part) != std::string::npos) tensor.shape = {groups, tensor.shape[0] / groups};
    }
  }
  void PairHeads(uint32_t head_dim) {
    for (auto& [name, tensor] : tensors_) {
      const bool is_rotated =
          name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
      if (is_rotated) tensor = PairsTogether(tensor, head_dim);
    }
  }
  // Splits [gate; up], of each expert if there are three dimensions.
  void SplitGateUp(const std::string& part, const std::string& gate, const std::string& up) {
    for (const auto& [name, both] : test::TinyTensors(tensors_)) {
      if (name.find(part) == std::string::npos) continue;
      const bool is_stacked = both.shape.size() == 3;
      const size_t n = is_stacked ? both.shape[0] : 1, half = both.bytes.size() / n / 2;
      for (const bool is_up : {false, true}) {
        TinyTensor tensor = {"F32", both.shape, {}};
        tensor.shape[is_stacked ? 1 : 0] /= 2;
        for (size_t e = 0; e < n; ++e) {
          const auto begin = both.bytes.begin() + static_cast<ptrdiff_t>((2 * e + is_up) * half);
          tensor.bytes.insert(tensor.bytes.end(), begin, begin + static_cast<ptrdiff_t>(half));
        }
        tensors_[Replaced(name, part, is_up ? up : gate)] = tensor;
      }
      tensors_.erase(name);
    }
  }
  const Renames kMamba = {
      {"mamba.A_log", "ssm_a"},       {"mamba.D", "ssm_d"},        {"mamba.dt_bias", "ssm_dt.bias"},
      {"mamba.conv1d", "ssm_conv1d"}, {"mamba.in_proj", "ssm_in"}, {"mamba.out_proj", "ssm_out"},
      {"mamba.norm", "ssm_norm"},
  };
  const Renames kSingleBlocks = {
      {"backbone.", "model."},
      {"model.layers.", "blk."},
      {"model.embeddings", "token_embd"},
      {"model.embedding", "token_embd"},
      {"model.norm_f", "output_norm"},
      {"lm_head", "output"},
      {"mixer.norm.", "ssm_norm."},
      {".norm.", ".attn_norm."},
      {"mixer.q_proj", "attn_q"},
      {"mixer.k_proj", "attn_k"},
      {"mixer.v_proj", "attn_v"},
      {"mixer.o_proj", "attn_output"},
      {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
      {"mixer.gate.", "ffn_gate_inp."},
      {"mixer.experts.up_proj", "ffn_up_exps"},
      {"mixer.experts.down_proj", "ffn_down_exps"},
      {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
      {"mixer.shared_experts.down_proj", "ffn_down_shexp"},
      {"mixer.up_proj", "ffn_up"},
      {"mixer.down_proj", "ffn_down"},
      {"mixer.", "mamba."},
  };
};

// Numbers by head as [heads, 1], and norms as [groups, width].
TEST_F(GgufMambaTest, Mamba2) {
  Load("linear_attention");
  WriteFolder();
  BeginMamba("mamba2", {{"context_length", 1 << 20},
                        {"feed_forward_length", 0},
                        {"attention.head_count", 0},
                        {"ssm.conv_kernel", 3},
                        {"ssm.state_size", 5},
                        {"ssm.group_count", 3},
                        {"ssm.time_step_rank", 12},
                        {"ssm.inner_size", 96}});
  SplitNorms(".mixer.norm.", 3);
  ExpectSame(Both({{"backbone.layers.", "blk."},
                   {"backbone.embeddings", "token_embd"},
                   {"backbone.norm_f", "output_norm"},
                   {".mixer.norm.", ".ssm_norm."},
                   {".norm.", ".attn_norm."},
                   {".mixer.", ".mamba."}},
                  kMamba));
}

// Gate and up of a layer's block come apart; heads of attention come by neighbouring pairs, also
// where there is no RoPE.
TEST_F(GgufMambaTest, Mamba2BesideAttentionInOtherLayers) {
  for (const bool rotates : {true, false}) {
    SCOPED_TRACE(rotates);
    Load("hybrid_types");
    config_["position_embedding_type"] = rotates ? "rope" : "nope";
    WriteFolder();
    BeginMamba("granitehybrid", {{"feed_forward_length", 172},
                                 {"attention.head_count_kv", {0, 2, 0, 0}},
                                 {"expert_used_count", 0},
                                 {"expert_shared_feed_forward_length", 100},
                                 {"rope.dimension_count", 16},
                                 {"ssm.conv_kernel", 3},
                                 {"ssm.state_size", 6},
                                 {"ssm.group_count", 4},
                                 {"ssm.time_step_rank", 16},
                                 {"ssm.inner_size", 128}});
    PutBool("rope.scaling.finetuned", rotates);
    PutMultipliers();
    SplitNorms(".mamba.norm.", 4);
    PairHeads(16);
    SplitGateUp(".shared_mlp.input_linear", ".mlp.gate_proj", ".mlp.up_proj");
    ExpectSame(Both(
        Both({{"post_attention_layernorm", "ffn_norm"}, {"shared_mlp.output_linear", "ffn_down"}},
             kMamba),
        kUsual));
  }
}

// Granite 4 without Mamba layers, whose files have their sizes all the same.
TEST_F(GgufMambaTest, AttentionOnly) {
  Load("multipliers");
  WriteFolder();
  BeginMamba("granite", {{"feed_forward_length", 99},
                         {"attention.head_count_kv", {2, 2, 2}},
                         {"expert_count", 0},
                         {"expert_used_count", 0},
                         {"expert_shared_feed_forward_length", config_["intermediate_size"]},
                         {"rope.dimension_count", 16},
                         {"ssm.conv_kernel", 4},
                         {"ssm.state_size", 16},
                         {"ssm.group_count", 1},
                         {"ssm.time_step_rank", 8},
                         {"ssm.inner_size", 128}});
  PutBool("rope.scaling.finetuned", true);
  PutMultipliers();
  PairHeads(16);
  ExpectSame(Both({{"post_attention_layernorm", "ffn_norm"}}, kUsual));
}

TEST_F(GgufMambaTest, Mamba2WithExperts) {
  Load("hybrid_experts");
  // Heads of an odd number of elements have no pairs.
  config_["num_attention_heads"] = 9;
  config_["num_key_value_heads"] = 3;
  for (auto& [name, tensor] : tensors_) {
    if (name.find("k_proj") == std::string::npos && name.find("v_proj") == std::string::npos) {
      continue;
    }
    tensor = {"F32", {18, 54}, test::EncodeFloats(test::TinyValues(name, 18 * 54, 1, 0.3f), "F32")};
  }
  WriteFolder();
  BeginMamba("granitehybrid", {{"feed_forward_length", 28},
                               {"attention.head_count_kv", {0, 3, 0, 0}},
                               {"expert_count", 5},
                               {"expert_used_count", 3},
                               {"expert_shared_feed_forward_length", 76},
                               {"ssm.conv_kernel", 4},
                               {"ssm.state_size", 10},
                               {"ssm.group_count", 1},
                               {"ssm.time_step_rank", 6},
                               {"ssm.inner_size", 108}});
  PutBool("rope.scaling.finetuned", false);
  PutMultipliers();
  SplitNorms(".mamba.norm.", 1);
  PairHeads(6);
  SplitGateUp(".shared_mlp.input_linear", ".ffn_gate_shexp", ".ffn_up_shexp");
  SplitGateUp(".block_sparse_moe.input_linear", ".ffn_gate_exps", ".ffn_up_exps");
  ExpectSame(Both(Both({{"post_attention_layernorm", "ffn_norm"},
                        {"shared_mlp.output_linear", "ffn_down_shexp"},
                        {"block_sparse_moe.output_linear", "ffn_down_exps"},
                        {"block_sparse_moe.router.layer", "ffn_gate_inp"}},
                       kMamba),
                  kUsual));
}

// The file has the multipliers in its matrices, and norms without ".weight": equal bit for bit if
// they are powers of two, and if those of embedding and head are 1.
TEST_F(GgufMambaTest, Mamba2AndAttentionInOneLayer) {
  Load("parallel_heads");
  for (const char* key : {"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"}) {
    config_[key] = false;
  }
  std::erase_if(tensors_, [](const auto& tensor) {
    return tensor.first.find("proj.bias") != std::string::npos;
  });
  config_.update({{"lm_head_multiplier", 1.0},
                  {"embedding_multiplier", 1.0},
                  {"mlp_multipliers", {0.5, 4.0}},
                  {"key_multiplier", 0.25},
                  {"attention_out_multiplier", 0.5},
                  {"attention_in_multiplier", 2.0},
                  {"ssm_multipliers", {0.5, 2.0, 4.0, 0.25, 8.0}},
                  {"ssm_in_multiplier", 0.5},
                  {"ssm_out_multiplier", 2.0}});
  WriteFolder();
  const json numbers = {
      {"feed_forward_length", 172},   {"attention.head_count_kv", 2}, {"attention.key_length", 16},
      {"attention.value_length", 16}, {"ssm.conv_kernel", 3},         {"ssm.state_size", 6},
      {"ssm.group_count", 2},         {"ssm.time_step_rank", 6},      {"ssm.inner_size", 48}};
  BeginMamba("falcon-h1", numbers);
  PutFloat("rope.freq_base", 10000.0f);
  SplitNorms(".mamba.norm.", 2);
  const auto scale = [&](const char* part, float factor) {
    Each(part, [&](std::vector<float>* values, TinyTensor*) {
      for (float& v : *values) v *= factor;
    });
  };
  scale("q_proj", 2.0f);
  scale("k_proj", 2.0f * 0.25f);
  scale("v_proj", 2.0f);
  scale("o_proj", 0.5f);
  scale("mamba.out_proj", 2.0f);
  scale("gate_proj", 0.5f);
  scale("down_proj", 4.0f);
  Each("mamba.in_proj", [](std::vector<float>* values, TinyTensor*) {
    for (size_t i = 0; i < values->size(); ++i) {
      const size_t row = i / 64;
      const float factor = row < 48    ? 0.5f
                           : row < 96  ? 2.0f
                           : row < 108 ? 4.0f
                           : row < 120 ? 0.25f
                                       : 8.0f;
      (*values)[i] *= 0.5f * factor;
    }
  });
  ExpectSame(Both(Both({{"model.final_layernorm", "output_norm"},
                        {"pre_ff_layernorm.weight", "ffn_norm"},
                        {"feed_forward.", "mlp."}},
                       kMamba),
                  kUsual));

  BeginMamba("falcon-h1", numbers);
  writer_.Tensor("token_embd.weight", test::kGgufF32, {509, 64},
                 tensors_.at("model.embed_tokens.weight").bytes);
  WriteGguf(writer_);
  EXPECT_THAT(GgufError(), HasSubstr("tensor output.weight is missing"));
}

// Layers of one block each: Mamba-2, attention or a feed-forward block.
TEST_F(GgufMambaTest, SingleBlocks) {
  Load("single_blocks");
  config_["time_step_min"] = 0.001;
  WriteFolder();
  BeginMamba("nemotron_h", {{"feed_forward_length", {0, 172, 0, 172, 0}},
                            {"attention.head_count_kv", {0, 0, 2, 0, 0}},
                            {"attention.key_length", 16},
                            {"attention.value_length", 16},
                            {"rope.dimension_count", 16},
                            {"ssm.conv_kernel", 4},
                            {"ssm.state_size", 9},
                            {"ssm.group_count", 2},
                            {"ssm.time_step_rank", 6},
                            {"ssm.inner_size", 72}});
  PutBool("rope.scaling.finetuned", false);
  SplitNorms(".mixer.norm.", 2);
  PairHeads(16);
  ExpectSame(Both(kSingleBlocks, kMamba));
}

TEST_F(GgufMambaTest, SingleBlocksWithExperts) {
  Load("single_blocks_experts");
  // The file has no width for a block without experts beside those with them.
  config_["num_hidden_layers"] = 4;
  config_["layers_block_type"].erase(4);
  config_["intermediate_size"] = 28;
  config_["time_step_min"] = 0.001;
  std::erase_if(tensors_, [](const auto& tensor) {
    return tensor.first.find("layers.4.") != std::string::npos;
  });
  WriteFolder();
  BeginMamba("nemotron_h_moe", {{"feed_forward_length", {0, 28, 0, 28}},
                                {"attention.head_count_kv", {0, 0, 2, 0}},
                                {"attention.key_length", 16},
                                {"attention.value_length", 16},
                                {"expert_count", 8},
                                {"expert_used_count", 3},
                                {"expert_feed_forward_length", 28},
                                {"expert_shared_feed_forward_length", 52},
                                {"expert_shared_count", 1},
                                {"expert_group_count", 2},
                                {"expert_group_used_count", 1},
                                {"ssm.conv_kernel", 4},
                                {"ssm.state_size", 9},
                                {"ssm.group_count", 2},
                                {"ssm.time_step_rank", 6},
                                {"ssm.inner_size", 72}});
  PutBool("expert_weights_norm", true);
  PutFloat("expert_weights_scale", 1.7f);
  SplitNorms(".mixer.norm.", 2);
  PairHeads(16);
  StackExperts();
  ExpectSame(Both(kSingleBlocks, kMamba));
}

// Attention in each third layer, experts in each second.
TEST_F(GgufMambaTest, ScanLayers) {
  Load("scan_layers");
  WriteFolder();
  BeginMamba("jamba", {{"feed_forward_length", 44},
                       {"attention.head_count_kv", {0, 3, 0, 0}},
                       {"expert_count", 5},
                       {"expert_used_count", 2},
                       {"ssm.conv_kernel", 3},
                       {"ssm.state_size", 6},
                       {"ssm.time_step_rank", 4},
                       {"ssm.inner_size", 120}});
  StackExperts();
  ExpectSame(Both(Both({{"model.final_layernorm", "output_norm"},
                        {"pre_ff_layernorm", "ffn_norm"},
                        {"feed_forward.router", "ffn_gate_inp"},
                        {"feed_forward.experts.gate_proj", "ffn_gate_exps"},
                        {"feed_forward.experts.up_proj", "ffn_up_exps"},
                        {"feed_forward.experts.down_proj", "ffn_down_exps"},
                        {"feed_forward.", "mlp."},
                        {"mamba.x_proj", "ssm_x"},
                        {"mamba.dt_proj", "ssm_dt"},
                        {"mamba.dt_layernorm", "ssm_dt_norm"},
                        {"mamba.b_layernorm", "ssm_b_norm"},
                        {"mamba.c_layernorm", "ssm_c_norm"}},
                       kMamba),
                  kUsual));
}

}  // namespace
}  // namespace arn::convert
