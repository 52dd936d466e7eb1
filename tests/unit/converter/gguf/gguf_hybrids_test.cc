// Short convolutions, and the delta rule, beside attention. Folder and file must give the same
// bundle.
#include "tests/unit/converter/gguf/gguf_hybrid_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class GgufHybridsTest : public GgufHybridTest {
 protected:
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
  for (auto& entry : tensors_) {
    const std::string& name = entry.first;
    TinyTensor& tensor = entry.second;
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
  for (const auto& entry : test::TinyTensors(tensors_)) {
    const std::string& name = entry.first;
    const TinyTensor& fused = entry.second;
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

// A multi-token prediction head as the layer behind the last.
TEST_F(GgufHybridsTest, PredictionHeads) {
  const Renames predictor = {{"mtp.layers.0.", "blk.N."},
                             {"mtp.fc", "blk.N.nextn.eh_proj"},
                             {"mtp.pre_fc_norm_embedding", "blk.N.nextn.enorm"},
                             {"mtp.pre_fc_norm_hidden", "blk.N.nextn.hnorm"},
                             {"mtp.norm", "blk.N.nextn.shared_head_norm"}};
  for (const auto& [name, architecture] :
       {std::pair("mtp/delta_rule", "qwen35"), std::pair("mtp/delta_rule_odd", "qwen35"),
        std::pair("mtp/delta_rule_experts", "qwen35moe")}) {
    SCOPED_TRACE(name);
    Load(name);
    WriteFolder();
    const uint32_t n_layers = config_.at("num_hidden_layers");
    BeginDeltaRule(architecture, {{"block_count", n_layers + 1}, {"nextn_predict_layers", 1}});
    for (const char* norm : {"norm_embedding.weight", "norm_hidden.weight", "mtp.norm.weight"}) {
      AddToEach(norm, 1.0f);
    }
    PutValueHeadsInTurn();
    Renames renames = Both(Both(Both(predictor, kDeltaRule), kSharedExperts), kUsual);
    renames.emplace_back("blk.N.", "blk." + std::to_string(n_layers) + ".");
    ExpectSame(renames);
    EXPECT_THAT(warnings_, ::testing::Not(::testing::Contains(HasSubstr("left out"))));
    // Without it the layer is left out.
    ConvertOptions options = GgufOptions(DType::kF32);
    options.mtp = false;
    Run(options);
    EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("left out: blk.")));
  }
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
