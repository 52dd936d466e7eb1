// Architectures whose layers differ. The checkpoints are those of the golden cases, without what
// GGUF files cannot express. Folder and file must give the same bundle.
#include "tests/unit/converter/gguf/gguf_hybrid_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class GgufHybridsTest : public GgufHybridTest {
 protected:
  const Renames kUsual = {
      {"model.layers.", "blk."},           {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},       {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"}, {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"},
  };
  const Renames kSharedExperts = {
      {"mlp.experts.gate_proj", "ffn_gate_exps"},
      {"mlp.experts.up_proj", "ffn_up_exps"},
      {"mlp.experts.down_proj", "ffn_down_exps"},
      {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
      {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
      {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
      {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
      {"mlp.gate.", "ffn_gate_inp."},
  };
  static Renames Both(Renames first, const Renames& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
  }

  // Writes the keys of the delta rule and changes its tensors, but for the order of heads.
  void BeginDeltaRule(const std::string& architecture, json numbers) {
    const json& c = config_;
    const uint32_t heads = c.at("linear_num_value_heads"), dim = c.at("linear_value_head_dim");
    const double rotary = c.at("rope_parameters").at("partial_rotary_factor");
    numbers.update(
        {{"attention.head_count_kv", c.at("num_key_value_heads")},
         {"attention.key_length", c.at("head_dim")},
         {"attention.value_length", c.at("head_dim")},
         {"rope.dimension_count", static_cast<uint32_t>(rotary * double(c.at("head_dim")))},
         {"ssm.conv_kernel", c.value("linear_conv_kernel_dim", 4)},
         {"ssm.state_size", c.at("linear_key_head_dim")},
         {"ssm.group_count", c.at("linear_num_key_heads")},
         {"ssm.time_step_rank", heads},
         {"ssm.inner_size", heads * dim},
         {"full_attention_interval", 4}});
    if (c.contains("intermediate_size")) numbers["feed_forward_length"] = c["intermediate_size"];
    if (c.contains("layer_types")) {
      json is_linear = json::array();
      for (const json& type : c["layer_types"]) is_linear.push_back(type == "linear_attention");
      numbers["attention.recurrent_layers"] = is_linear;
    }
    if (c.value("num_experts", 0) != 0) {
      numbers.update({{"expert_count", c["num_experts"]},
                      {"expert_used_count", c["num_experts_per_tok"]},
                      {"expert_feed_forward_length", c["moe_intermediate_size"]},
                      {"expert_shared_feed_forward_length", c["shared_expert_intermediate_size"]}});
    }
    Begin(architecture, numbers);
    PutFloat("attention.layer_norm_rms_epsilon", c["rms_norm_eps"]);
    PutFloat("rope.freq_base", c["rope_parameters"]["rope_theta"]);
    NegateExponentials(".A_log");
    SqueezeConvolutions(".conv1d");
    for (const char* norm : {"layernorm.weight", "_norm.weight", "model.norm.weight"}) {
      AddToEach(norm, 1.0f);
    }
    StackExperts();
  }
  void PutValueHeadsInTurn() {
    const size_t keys = config_["linear_num_key_heads"], dim = config_["linear_value_head_dim"];
    const size_t in_group = size_t{config_["linear_num_value_heads"]} / keys;
    const size_t first = 2 * keys * size_t{config_["linear_key_head_dim"]};
    for (const char* rows : {".in_proj_a.", ".in_proj_b.", ".A_log", ".dt_bias"}) {
      PutHeadsInTurn(rows, false, 0, keys, in_group, 1);
    }
    PutHeadsInTurn(".in_proj_z.", false, 0, keys, in_group, dim);
    PutHeadsInTurn(".in_proj_qkv.", false, first, keys, in_group, dim);
    PutHeadsInTurn(".conv1d.", false, first, keys, in_group, dim);
    PutHeadsInTurn(".out_proj.", true, 0, keys, in_group, dim);
  }
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
  void BeginGlobalHeads(json numbers) {
    json is_local = json::array();
    for (const json& type : config_.at("layer_types")) {
      is_local.push_back(type == "sliding_attention");
    }
    numbers["attention.sliding_window"] = 8;
    numbers["attention.sliding_window_pattern"] = is_local;
    Begin("gemma4", numbers);
    PutFloat("attention.layer_norm_rms_epsilon", 1e-5f);
    PutFloat("rope.freq_base", 1e6f);
    PutFloat("rope.freq_base_swa", 1e4f);
    PutFloat("final_logit_softcapping", 12.0f);
  }
  // `n` of the pairs rotate.
  void PutRotatedPart(size_t n, size_t pairs) {
    std::vector<float> factors(pairs, 1e30f);
    std::fill_n(factors.begin(), n, 1.0f);
    writer_.Tensor("rope_freqs.weight", test::kGgufF32, {pairs},
                   test::EncodeFloats(factors, "F32"));
  }
  const Renames kPerLayer = {
      {"model.embed_tokens_per_layer", "per_layer_token_embd"},
      {"model.per_layer_model_projection", "per_layer_model_proj"},
      {"model.per_layer_projection_norm", "per_layer_proj_norm"},
      {"per_layer_input_gate", "inp_gate"},
      {"post_per_layer_input_norm", "post_norm"},
      {"per_layer_projection", "proj"},
      {"layer_scalar", "layer_output_scale.weight"},
      {"post_attention_layernorm", "post_attention_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
  };
  const Renames kDeltaRule = {
      {"post_attention_layernorm", "post_attention_norm"},
      {"linear_attn.A_log", "ssm_a"},
      {"linear_attn.dt_bias", "ssm_dt.bias"},
      {"linear_attn.conv1d", "ssm_conv1d"},
      {"linear_attn.in_proj_qkv.", "attn_qkv."},
      {"linear_attn.in_proj_z", "attn_gate"},
      {"linear_attn.in_proj_a", "ssm_alpha"},
      {"linear_attn.in_proj_ba", "ssm_ba"},
      {"linear_attn.in_proj_b", "ssm_beta"},
      {"linear_attn.norm", "ssm_norm"},
      {"linear_attn.out_proj", "ssm_out"},
  };
};

// Convolutions without their middle dimension; the first layer has no experts.
TEST_F(GgufHybridsTest, ShortConvolutionsWithExperts) {
  Load("corrected_routing");
  WriteFolder();
  Begin("lfm2moe", {{"feed_forward_length", 172},
                    {"attention.head_count_kv", {0, 2, 0, 0}},
                    {"expert_count", 6},
                    {"expert_used_count", 2},
                    {"expert_feed_forward_length", 44},
                    {"expert_gating_func", 2},
                    {"leading_dense_block_count", 1},
                    {"shortconv.l_cache", 3}});
  PutFloat("attention.layer_norm_rms_epsilon", 1e-5f);
  PutFloat("rope.freq_base", 1e6f);
  PutFloat("expert_weights_scale", 1.3f);
  SqueezeConvolutions("conv.conv");
  StackExperts();
  ExpectSame({{"model.layers.", "blk."},
              {"model.embed_tokens", "token_embd"},
              {"model.embedding_norm", "token_embd_norm"},
              {"operator_norm", "attn_norm"},
              {"self_attn.q_proj", "attn_q"},
              {"self_attn.k_proj", "attn_k"},
              {"self_attn.v_proj", "attn_v"},
              {"self_attn.out_proj", "attn_output"},
              {"self_attn.q_layernorm", "attn_q_norm"},
              {"self_attn.k_layernorm", "attn_k_norm"},
              {"conv.conv", "shortconv.conv"},
              {".conv.in_proj", ".shortconv.in_proj"},
              {".conv.out_proj", ".shortconv.out_proj"},
              {"feed_forward.expert_bias", "exp_probs_b.bias"},
              {"feed_forward.gate.", "ffn_gate_inp."},
              {"feed_forward.experts.w1", "ffn_gate_exps"},
              {"feed_forward.experts.w2", "ffn_down_exps"},
              {"feed_forward.experts.w3", "ffn_up_exps"},
              {"feed_forward.w1", "ffn_gate"},
              {"feed_forward.w2", "ffn_down"},
              {"feed_forward.w3", "ffn_up"}},
             "with the weights of a token's experts divided by their sum");
}

// The value heads of each key head, which the file has in turn; norms with the 1 added.
TEST_F(GgufHybridsTest, DeltaRule) {
  for (const char* name : {"delta_rule", "delta_rule_odd"}) {
    SCOPED_TRACE(name);
    Load(name);
    WriteFolder();
    BeginDeltaRule("qwen35", {{"rope.dimension_sections", {11, 11, 10, 0}}});
    PutValueHeadsInTurn();
    ExpectSame(Both(kDeltaRule, kUsual));
  }
}

// More than two value heads for each of several key heads.
TEST_F(GgufHybridsTest, DeltaRuleOfManyValueHeads) {
  Load("delta_rule");
  config_["linear_num_key_heads"] = 3;
  config_["linear_num_value_heads"] = 12;
  config_["linear_key_head_dim"] = 5;
  config_["linear_value_head_dim"] = 7;
  for (auto& [name, tensor] : tensors_) {
    const auto resize = [&](const char* part, std::vector<uint64_t> shape) {
      if (name.find(part) == std::string::npos) return;
      uint64_t count = 1;
      for (const uint64_t n : shape) count *= n;
      tensor = {"F32", shape, test::EncodeFloats(test::TinyValues(name, count, 1, 0.3f), "F32")};
    };
    for (const char* part : {".A_log", ".dt_bias"}) resize(part, {12});
    for (const char* part : {".in_proj_a.", ".in_proj_b."}) resize(part, {12, 64});
    resize(".in_proj_z.", {84, 64});
    resize(".in_proj_qkv.", {114, 64});
    resize(".conv1d.", {114, 1, 4});
    resize(".linear_attn.norm.", {7});
    resize(".out_proj.", {64, 84});
  }
  WriteFolder();
  BeginDeltaRule("qwen35", json::object());
  PutValueHeadsInTurn();
  ExpectSame(Both(kDeltaRule, kUsual));
}

TEST_F(GgufHybridsTest, DeltaRuleWithExperts) {
  Load("delta_rule_experts");
  WriteFolder();
  BeginDeltaRule("qwen35moe", json::object());
  PutValueHeadsInTurn();
  ExpectSame(Both(Both(kDeltaRule, kSharedExperts), kUsual));
}

// [q, k, v, z] by key head becomes [q; k; v] and z; time steps and betas stay as they are. The
// second layer has no experts.
TEST_F(GgufHybridsTest, FusedDeltaRuleWithExperts) {
  Load("delta_rule_fused_experts");
  WriteFolder();
  BeginDeltaRule("qwen3next", {{"feed_forward_length", 172}});
  const size_t groups = 2, key = 10, values = 21;
  for (const auto& [name, fused] : test::TinyTensors(tensors_)) {
    const size_t at = name.find("in_proj_qkvz");
    if (at == std::string::npos) continue;
    const size_t row_bytes = fused.bytes.size() / fused.shape[0];
    const auto append = [&](size_t first, size_t rows, TinyTensor* to) {
      for (size_t g = 0; g < groups; ++g) {
        const size_t begin = (g * 2 * (key + values) + first) * row_bytes;
        to->bytes.insert(to->bytes.end(), fused.bytes.begin() + static_cast<ptrdiff_t>(begin),
                         fused.bytes.begin() + static_cast<ptrdiff_t>(begin + rows * row_bytes));
        to->shape[0] += rows;
      }
    };
    TinyTensor qkv = {"F32", {0, 64}, {}}, z = qkv;
    append(0, key, &qkv);
    append(key, key, &qkv);
    append(2 * key, values, &qkv);
    append(2 * key + values, values, &z);
    tensors_[name.substr(0, at) + "in_proj_qkv.weight"] = qkv;
    tensors_[name.substr(0, at) + "in_proj_z.weight"] = z;
    tensors_.erase(name);
  }
  ExpectSame(Both(Both(kDeltaRule, kSharedExperts), kUsual),
             "with the weights of a token's experts divided by their sum");
}

// Numbers by head as [heads, 1], and norms as [groups, width].
TEST_F(GgufHybridsTest, Mamba2) {
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
TEST_F(GgufHybridsTest, Mamba2BesideAttentionInOtherLayers) {
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

TEST_F(GgufHybridsTest, Mamba2WithExperts) {
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
TEST_F(GgufHybridsTest, Mamba2AndAttentionInOneLayer) {
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
TEST_F(GgufHybridsTest, SingleBlocks) {
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

TEST_F(GgufHybridsTest, SingleBlocksWithExperts) {
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
TEST_F(GgufHybridsTest, ScanLayers) {
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

// Streams in one tensor, the sparsity of gates as quantiles, and widths by layer.
TEST_F(GgufHybridsTest, ResidualStreams) {
  Load("residual_streams");
  config_["vocab_size_per_layer_input"] = 509;
  TinyTensor& table = tensors_.at("model.embed_tokens_per_layer.weight");
  table.bytes.resize(table.bytes.size() / table.shape[0] * 509);
  table.shape[0] = 509;
  WriteFolder();
  Begin("gemma3n", {{"feed_forward_length", {84, 84, 84, 100, 84, 100}},
                    {"attention.head_count_kv", 2},
                    {"attention.key_length", 16},
                    {"attention.value_length", 16},
                    {"attention.sliding_window", 8},
                    {"attention.shared_kv_layers", 2},
                    {"attention.sliding_window_pattern", {true, false, true, false, true, false}},
                    {"altup.active_idx", 0},
                    {"altup.num_inputs", 4},
                    {"embedding_length_per_layer_input", 10}});
  PutFloat("attention.layer_norm_rms_epsilon", 1e-5f);
  PutFloat("rope.freq_base", 1e6f);
  PutFloat("rope.freq_base_swa", 1e4f);
  PutFloat("final_logit_softcapping", 12.0f);
  // Of 0.8, 0.8, 0.3, 0.5 and 0, as torch rounds them.
  writer_.Floats("gemma3n.activation_sparsity_scale",
                 {0.84162122f, 0.84162122f, -0.52440053f, 0.0f, -INFINITY, -INFINITY});
  for (const char* name : {"model.altup_projections.", "model.altup_unembed_projections."}) {
    TinyTensor stack = {"F32", {3, 64, 64}, {}};
    for (int i = 0; i < 3; ++i) {
      const std::string part = name + std::to_string(i) + ".weight";
      const std::vector<uint8_t>& bytes = tensors_.at(part).bytes;
      stack.bytes.insert(stack.bytes.end(), bytes.begin(), bytes.end());
      tensors_.erase(part);
    }
    tensors_[name + std::string("weight")] = stack;
  }
  const Renames streams = {{"altup_projections", "altup_proj"},
                           {"altup_unembed_projections", "altup_unembd_proj"},
                           {"model.altup_", "altup_"},
                           {"altup.correct_output_scale", "altup_correct_scale.weight"},
                           {"altup.correction_coefs", "altup_correct_coef"},
                           {"altup.prediction_coefs", "altup_predict_coef"},
                           {"altup.modality_router", "altup_router"},
                           {"altup.router_norm", "altup_router_norm"},
                           {"laurel.linear_left", "laurel_l"},
                           {"laurel.linear_right", "laurel_r"},
                           {"laurel.post_laurel_norm", "laurel_post_norm"}};
  ExpectSame(Both(Both(streams, kPerLayer), kUsual));
}

// Layers without a window have heads of their own, of which a part rotates; the last ones share
// keys and are twice as wide.
TEST_F(GgufHybridsTest, PerLayerEmbeddings) {
  Load("per_layer_embeddings");
  WriteFolder();
  BeginGlobalHeads({{"feed_forward_length", {84, 84, 84, 84, 168, 168}},
                    {"attention.head_count_kv", 2},
                    {"attention.key_length", 24},
                    {"attention.value_length", 24},
                    {"attention.key_length_swa", 16},
                    {"attention.value_length_swa", 16},
                    {"attention.shared_kv_layers", 2},
                    {"rope.dimension_count", 24},
                    {"rope.dimension_count_swa", 16},
                    {"embedding_length_per_layer_input", 10}});
  PutRotatedPart(3, 12);
  ExpectSame(Both(kPerLayer, kUsual));

  BeginGlobalHeads(
      {{"feed_forward_length", {84, 84, 84, 90, 168, 168}}, {"attention.shared_kv_layers", 2}});
  PutRotatedPart(3, 12);
  writer_.Tensor("token_embd.weight", test::kGgufF32, {509, 64},
                 tensors_.at("model.embed_tokens.weight").bytes);
  WriteGguf(writer_);
  EXPECT_THAT(GgufError(), HasSubstr("gemma4.feed_forward_length: expected one number, or twice"));
}

// Experts beside the feed-forward block, gate and up of all in one tensor; keys that are values.
TEST_F(GgufHybridsTest, ExpertsBesideTheBlock) {
  Load("experts_beside");
  config_["tie_word_embeddings"] = true;
  tensors_.erase("lm_head.weight");
  WriteFolder();
  BeginGlobalHeads({{"feed_forward_length", 84},
                    {"attention.head_count_kv", {1, 1, 1}},
                    {"attention.key_length", 26},
                    {"attention.value_length", 26},
                    {"attention.key_length_swa", 18},
                    {"attention.value_length_swa", 18},
                    {"attention.shared_kv_layers", 0},
                    {"expert_count", 6},
                    {"expert_used_count", 3},
                    {"expert_feed_forward_length", 28},
                    {"rope.dimension_count", 26},
                    {"rope.dimension_count_swa", 18},
                    {"embedding_length_per_layer_input", 0}});
  PutRotatedPart(6, 13);
  const Renames experts = {{"post_feedforward_layernorm_1", "post_ffw_norm_1"},
                           {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
                           {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
                           {"router.per_expert_scale", "ffn_down_exps.scale"},
                           {"router.scale", "ffn_gate_inp.scale"},
                           {"router.proj", "ffn_gate_inp"},
                           {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                           {"experts.down_proj", "ffn_down_exps.weight"}};
  ExpectSame(Both(Both(experts, kPerLayer), kUsual));
}

// A layer behind the last, which predicts further tokens, is left out.
TEST_F(GgufHybridsTest, LayersOfFurtherTokensAreLeftOut) {
  Load("delta_rule");
  WriteFolder();
  BeginDeltaRule("qwen35", {{"block_count", 5}, {"nextn_predict_layers", 1}});
  PutValueHeadsInTurn();
  const std::vector<float> row(64, 0.5f);
  for (const char* name : {"attn_norm", "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"}) {
    writer_.Tensor("blk.4." + std::string(name) + ".weight", test::kGgufF32, {64},
                   test::EncodeFloats(row, "F32"));
  }
  ExpectSame(Both(kDeltaRule, kUsual));
  EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("left out: blk.4.* (4 tensors)")));
}

TEST_F(GgufHybridsTest, UnknownKeysAreRefused) {
  Load("delta_rule");
  const auto error_of = [&](const auto& put) {
    BeginDeltaRule("qwen35", json::object());
    put();
    writer_.Tensor("token_embd.weight", test::kGgufF32, {509, 64},
                   tensors_.at("model.embed_tokens.weight").bytes);
    WriteGguf(writer_);
    return GgufError();
  };
  EXPECT_THAT(error_of([&] { PutFloat("attention.temperature_scale", 0.5f); }),
              HasSubstr("qwen35.attention.temperature_scale is 0.5, which is not supported"));
  EXPECT_THAT(error_of([&] { writer_.String("qwen35.rope.scaling.type", "yarn"); }),
              HasSubstr("qwen35.rope.scaling.type is \"yarn\", which is not supported"));
  EXPECT_THAT(error_of([&] { writer_.Uint("qwen35.nextn_predict_layers", 4); }),
              HasSubstr("qwen35.nextn_predict_layers: expected less than block_count, found 4"));
}

}  // namespace
}  // namespace arn::convert
