// Configs of layers with linear attention.
#include "converter/family/linear_mixers.h"

#include "converter/family/families.h"
#include "converter/hf/json_file.h"
#include "converter/plan/kv_geometry.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using test::ErrorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Changed(json config, const json& changes) {
  if (!changes.is_null()) config.merge_patch(changes);
  return config;
}

json DeltaConfig(const json& changes = {}) {
  return Changed({{"architectures", {"Qwen3_5ForCausalLM"}},
                  {"vocab_size", 99},
                  {"hidden_size", 1024},
                  {"intermediate_size", 3584},
                  {"num_hidden_layers", 5},
                  {"num_attention_heads", 8}},
                 changes);
}

json Mamba2Config(const json& changes = {}) {
  return Changed({{"architectures", {"Mamba2ForCausalLM"}},
                  {"vocab_size", 99},
                  {"hidden_size", 4096},
                  {"num_hidden_layers", 2}},
                 changes);
}

json GraniteConfig(const json& changes = {}) {
  return Changed({{"architectures", {"GraniteMoeHybridForCausalLM"}},
                  {"vocab_size", 99},
                  {"hidden_size", 768},
                  {"intermediate_size", 2048},
                  {"shared_intermediate_size", 1024},
                  {"num_hidden_layers", 3},
                  {"num_attention_heads", 12},
                  {"num_local_experts", 0},
                  {"mamba_n_heads", 48},
                  {"layer_types", {"mamba", "attention", "mamba"}}},
                 changes);
}

json BlocksConfig(const json& changes = {}) {
  return Changed({{"architectures", {"NemotronHForCausalLM"}},
                  {"vocab_size", 99},
                  {"hidden_size", 1024},
                  {"intermediate_size", 2048},
                  {"num_attention_heads", 8},
                  {"num_hidden_layers", 52},
                  {"hybrid_override_pattern", "M-M*-"}},
                 changes);
}

DecoderSpec Read(const json& config) {
  std::vector<std::string> warnings;
  return ReadDecoderSpec(config, "config.json", &warnings);
}

std::string ErrorOfConfig(const json& config) {
  return ErrorOf([&] { Read(config); });
}

TEST(LinearMixers, DeltaRule_Defaults) {
  const DecoderSpec spec = Read(DeltaConfig());
  // Every fourth layer has attention.
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 0, 0, 1, 0));
  const LayerKindSpec &linear = spec.kinds.at(0), &attention = spec.kinds.at(1);
  EXPECT_EQ(Mixer::kLinearAttention, linear.mixer);
  EXPECT_TRUE(linear.has_delta_rule && linear.norms_before_gate);
  EXPECT_FALSE(linear.has_attention_gate || linear.has_conv_bias || linear.has_mixer_in_bias);
  EXPECT_EQ(32u, linear.linear_heads);
  EXPECT_EQ(16u, linear.linear_key_heads);
  EXPECT_EQ(128u, linear.linear_key_dim);
  EXPECT_EQ(128u, linear.linear_value_dim);
  EXPECT_EQ(128u, linear.mixer_norm_group);
  EXPECT_EQ(4u, linear.conv_taps);
  EXPECT_EQ(8192u, linear.conv_width());
  EXPECT_EQ(3 * 8192u + 32 * 128 * 128, linear.state_floats());
  EXPECT_EQ(3584u, linear.ffn_dim);
  EXPECT_TRUE(attention.has_attention_gate && attention.has_qk_norm);
  EXPECT_EQ(256u, attention.head_dim);
  EXPECT_EQ(64u, spec.ropes.at(0).rotary_dim);
  EXPECT_EQ(1.0f, spec.norm_offset);
  EXPECT_THAT(Read(DeltaConfig({{"full_attention_interval", 2}})).layer_kinds,
              ElementsAre(0, 1, 0, 1, 0));
}

TEST(LinearMixers, DeltaRule_WrongValues_AreRefused) {
  EXPECT_THAT(ErrorOfConfig(DeltaConfig({{"hidden_act", "gelu"}})), HasSubstr("hidden_act"));
  EXPECT_THAT(ErrorOfConfig(DeltaConfig({{"attn_output_gate", false}})),
              HasSubstr("attn_output_gate"));
  EXPECT_THAT(ErrorOfConfig(DeltaConfig({{"linear_num_key_heads", 5}})),
              HasSubstr("linear_num_key_heads"));
  EXPECT_THAT(ErrorOfConfig(DeltaConfig({{"linear_key_head_dim", 2048}})), HasSubstr("2048"));
  EXPECT_THAT(ErrorOfConfig(DeltaConfig({{"linear_conv_kernel_dim", 65}})), HasSubstr("65 inputs"));
  EXPECT_THAT(ErrorOfConfig(DeltaConfig({{"layer_types", {"linear_attention"}}})),
              HasSubstr("5 entries, linear_attention or full_attention"));
}

// Sizes of the configuration class that follow from others.
TEST(LinearMixers, SplitDeltaRule_Defaults) {
  const auto config = [](const json& changes) {
    return Changed({{"architectures", {"OlmoHybridForCausalLM"}},
                    {"vocab_size", 100},
                    {"hidden_size", 120},
                    {"intermediate_size", 64},
                    {"num_attention_heads", 6},
                    {"num_hidden_layers", 5}},
                   changes);
  };
  const DecoderSpec spec = Read(config({}));
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 0, 0, 1, 0));
  const LayerKindSpec& linear = spec.kinds.at(0);
  EXPECT_EQ(6u, linear.linear_heads);
  EXPECT_EQ(6u, linear.linear_key_heads);
  EXPECT_EQ(15u, linear.linear_key_dim);
  EXPECT_EQ(30u, linear.linear_value_dim);
  EXPECT_TRUE(linear.doubles_betas);
  EXPECT_EQ(1e-5f, linear.mixer_norm_epsilon);
  EXPECT_EQ(1u, spec.ropes.size());
  EXPECT_FALSE(Read(config({{"linear_allow_neg_eigval", false}})).kinds.at(0).doubles_betas);
  EXPECT_THAT(Read(config({{"num_hidden_layers", 2}})).layer_kinds, ElementsAre(0, 1));
  EXPECT_EQ(12u, Read(config({{"linear_num_value_heads", 12}})).kinds.at(0).linear_heads);
  json without_positions = config({});
  without_positions["rope_theta"] = nullptr;
  EXPECT_TRUE(Read(without_positions).ropes.empty());
  without_positions["rope_parameters"] = {{"rope_theta", 500.0}};
  EXPECT_EQ(1u, Read(without_positions).ropes.size());
  without_positions["rope_parameters"]["rope_theta"] = nullptr;
  EXPECT_TRUE(Read(without_positions).ropes.empty());
}

TEST(LinearMixers, Mamba2_DefaultsAndTimeSteps) {
  const DecoderSpec spec = Read(Mamba2Config());
  EXPECT_FALSE(spec.tied);
  EXPECT_EQ(1u << 24, spec.max_context);
  const LayerKindSpec& kind = spec.kinds.at(0);
  EXPECT_FALSE(kind.has_delta_rule || kind.norms_before_gate || kind.has_mixer_out_bias);
  EXPECT_TRUE(kind.has_conv_bias);
  EXPECT_EQ(128u, kind.linear_heads);
  EXPECT_EQ(8u, kind.linear_key_heads);
  EXPECT_EQ(64u, kind.linear_value_dim);
  EXPECT_EQ(8192u, kind.mixer_norm_group);
  EXPECT_EQ(0u, kind.n_heads + kind.ffn_dim + kind.scan_states + kind.mixer_width);
  EXPECT_EQ(0.0f, kind.time_step_low + kind.time_step_high);
  const auto limited = [](const json& limit) {
    return Read(Mamba2Config({{"time_step_limit", limit}})).kinds.at(0);
  };
  EXPECT_EQ(0.5f, limited({0.5, 2.0}).time_step_low);
  EXPECT_EQ(2.0f, limited({0.5, 2.0}).time_step_high);
  EXPECT_EQ(0.0f, limited({-1, {{"__float__", "Infinity"}}}).time_step_high);
  EXPECT_EQ(0.0f, limited({-1, 2}).time_step_low);
  for (const json& wrong : {json{2, 1}, json{0, 0}, json{1}, json{"a", 1}, json(3)}) {
    EXPECT_THAT(ErrorOfConfig(Mamba2Config({{"time_step_limit", wrong}})),
                HasSubstr("time_step_limit"));
  }
  EXPECT_THAT(ErrorOfConfig(Mamba2Config({{"num_heads", 64}})), HasSubstr("8192"));
}

// As json.dumps of Python writes it.
TEST(LinearMixers, BareInfinity_IsRead) {
  const json config = ParseJson(R"({"a": [0.0, Infinity], "b": "Infinity", "c": -Infinity})", "x");
  EXPECT_EQ("Infinity", config["a"][1]["__float__"]);
  EXPECT_EQ("Infinity", config["b"]);
  EXPECT_EQ("-Infinity", config["c"]["__float__"]);
  EXPECT_THAT(ErrorOf([] { ParseJson(R"({"a": Infinit})", "x"); }), HasSubstr("x"));
}

TEST(LinearMixers, Types_SelectTheLayers) {
  const DecoderSpec spec = Read(GraniteConfig());
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 1, 0));
  EXPECT_EQ(32u, spec.kinds.at(0).linear_value_dim);  // 2 * 768 / 48
  EXPECT_EQ(1024u, spec.kinds.at(0).ffn_dim);
  EXPECT_EQ(kNoRope, spec.kinds.at(1).rope);
  EXPECT_NE(kNoRope, Read(GraniteConfig({{"position_embedding_type", "rope"}})).kinds.at(1).rope);
  EXPECT_THAT(Read(GraniteConfig({{"layer_types", nullptr}})).layer_kinds, ElementsAre(0, 0, 0));
  EXPECT_EQ(8u, Read(GraniteConfig({{"num_local_experts", nullptr}})).kinds.at(0).n_experts);
  EXPECT_EQ(0u, spec.kinds.at(0).n_experts);
  EXPECT_EQ(4u, Read(GraniteConfig({{"num_local_experts", 4}})).kinds.at(0).n_experts);
  EXPECT_THAT(ErrorOfConfig(GraniteConfig({{"mamba_d_head", 16}})), HasSubstr("mamba_d_head"));
}

TEST(LinearMixers, Blocks_HaveNothingBesideTheirMixer) {
  const DecoderSpec spec = Read(BlocksConfig());
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 1, 0, 2, 1));
  EXPECT_EQ(Mixer::kLinearAttention, spec.kinds.at(0).mixer);
  EXPECT_EQ(0u, spec.kinds.at(0).ffn_dim);
  EXPECT_EQ(1024u, spec.kinds.at(0).mixer_norm_group);  // 128 heads of 64 in 8 groups
  EXPECT_FLOAT_EQ(0.001f, spec.kinds.at(0).time_step_low);
  EXPECT_EQ(Mixer::kNone, spec.kinds.at(1).mixer);
  EXPECT_EQ(2048u, spec.kinds.at(1).ffn_dim);
  EXPECT_EQ(Activation::kReluSquared, spec.kinds.at(1).activation);
  EXPECT_EQ(Mixer::kAttention, spec.kinds.at(2).mixer);
  EXPECT_EQ(0u, spec.kinds.at(2).ffn_dim);
  const DecoderSpec sparse = Read(BlocksConfig({{"hybrid_override_pattern", "ME"}}));
  EXPECT_EQ(8u, sparse.kinds.at(1).n_experts);
  EXPECT_EQ(7688u, sparse.kinds.at(1).shared_ffn_dim);
  EXPECT_THAT(ErrorOfConfig(BlocksConfig({{"hybrid_override_pattern", "MX"}})),
              HasSubstr("hybrid_override_pattern"));
  EXPECT_THAT(ErrorOfConfig(BlocksConfig({{"hybrid_override_pattern", nullptr}})),
              HasSubstr("layers_block_type"));
  EXPECT_THAT(Read(BlocksConfig({{"layers_block_type", {"mlp", "mamba"}}})).layer_kinds,
              ElementsAre(0, 1));
}

TEST(LinearMixers, Geometry_CountsKeysAndStates) {
  const KvGeometry beside = ReadKvGeometry({{"architectures", {"FalconH1ForCausalLM"}},
                                            {"vocab_size", 99},
                                            {"hidden_size", 1024},
                                            {"intermediate_size", 2048},
                                            {"num_hidden_layers", 3},
                                            {"num_attention_heads", 8},
                                            {"mamba_d_ssm", 1536},
                                            {"mamba_n_heads", 24},
                                            {"mamba_d_head", 64},
                                            {"mamba_d_state", 128}},
                                           "config.json");
  ASSERT_EQ(1u, beside.states.size());
  EXPECT_EQ(3u, beside.states[0].n_layers);
  EXPECT_EQ(3 * (1536u + 256) + 24 * 64 * 128, beside.states[0].state_floats);
  ASSERT_EQ(1u, beside.groups.size());
  EXPECT_EQ(3u, beside.groups[0].n_layers);
  const KvGeometry blocks = ReadKvGeometry(BlocksConfig(), "config.json");
  ASSERT_EQ(1u, blocks.groups.size());
  EXPECT_EQ(1u, blocks.groups[0].n_layers);
  EXPECT_EQ(2u, blocks.states[0].n_layers);
}

}  // namespace
}  // namespace arn::convert
