// Configs of layers with a scan or a short convolution.
#include "converter/family/mixers.h"

#include "converter/family/families.h"
#include "converter/plan/kv_geometry.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::ErrorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

nlohmann::json Changed(nlohmann::json config, const nlohmann::json& changes) {
  if (!changes.is_null()) config.merge_patch(changes);
  return config;
}

nlohmann::json ScanConfig(const nlohmann::json& changes = {}) {
  return Changed({{"architectures", {"MambaForCausalLM"}},
                  {"model_type", "mamba"},
                  {"vocab_size", 50280},
                  {"hidden_size", 768},
                  {"num_hidden_layers", 2}},
                 changes);
}

// The keys of LFM2-1.2B.
nlohmann::json ConvConfig(const nlohmann::json& changes = {}) {
  return Changed({{"architectures", {"Lfm2ForCausalLM"}},
                  {"model_type", "lfm2"},
                  {"vocab_size", 65536},
                  {"hidden_size", 2048},
                  {"num_hidden_layers", 4},
                  {"num_attention_heads", 32},
                  {"num_key_value_heads", 8},
                  {"block_ff_dim", 12288},
                  {"norm_eps", 1e-5},
                  {"rope_theta", 1000000.0},
                  {"full_attn_idxs", {2}}},
                 changes);
}

DecoderSpec Read(const nlohmann::json& config) {
  std::vector<std::string> warnings;
  DecoderSpec spec = ReadDecoderSpec(config, "config.json", &warnings);
  EXPECT_THAT(warnings, IsEmpty());
  return spec;
}

std::string ErrorOfConfig(const nlohmann::json& config) {
  return ErrorOf([&] { Read(config); });
}

// The defaults of transformers' configuration class.
TEST(Mixers, Scan_Defaults) {
  const DecoderSpec spec = Read(ScanConfig());
  EXPECT_TRUE(spec.tied);
  EXPECT_EQ(1u << 24, spec.max_context);
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 0));
  const LayerKindSpec& kind = spec.kinds.at(0);
  EXPECT_EQ(Mixer::kScan, kind.mixer);
  EXPECT_EQ(1536u, kind.mixer_width);
  EXPECT_EQ(4u, kind.conv_taps);
  EXPECT_EQ(16u, kind.scan_states);
  EXPECT_EQ(48u, kind.scan_rank);
  EXPECT_FALSE(kind.has_mixer_in_bias);
  EXPECT_TRUE(kind.has_conv_bias);
  EXPECT_EQ(0u, kind.n_heads + kind.n_kv_heads + kind.head_dim + kind.ffn_dim);
  EXPECT_EQ(kNoRope, kind.rope);
  EXPECT_TRUE(spec.ropes.empty());
  // (4 - 1 + 16) * 1536
  EXPECT_EQ(29184u, kind.state_floats());
}

TEST(Mixers, Scan_WhatTheConfigSays) {
  const LayerKindSpec kind = Read(ScanConfig({{"expand", 3},
                                              {"conv_kernel", 2},
                                              {"state_size", 7},
                                              {"time_step_rank", 5},
                                              {"use_bias", true},
                                              {"use_conv_bias", false},
                                              {"layer_norm_epsilon", 1e-4}}))
                                 .kinds.at(0);
  EXPECT_EQ(2304u, kind.mixer_width);
  EXPECT_EQ(2u, kind.conv_taps);
  EXPECT_EQ(7u, kind.scan_states);
  EXPECT_EQ(5u, kind.scan_rank);
  EXPECT_TRUE(kind.has_mixer_in_bias && kind.has_mixer_out_bias);
  EXPECT_FALSE(kind.has_conv_bias);
  EXPECT_FLOAT_EQ(1e-4f, kind.norm_epsilon);
  EXPECT_EQ(49u, Read(ScanConfig({{"hidden_size", 769}})).kinds[0].scan_rank);
  EXPECT_EQ(1000u, Read(ScanConfig({{"intermediate_size", 1000}})).kinds[0].mixer_width);
}

TEST(Mixers, Scan_WrongValues_AreRefused) {
  EXPECT_THAT(ErrorOfConfig(ScanConfig({{"time_step_rank", "many"}})), HasSubstr("time_step_rank"));
  EXPECT_THAT(ErrorOfConfig(ScanConfig({{"expand", -1}})), HasSubstr("expand"));
  EXPECT_THAT(ErrorOfConfig(ScanConfig({{"state_size", 257}})), HasSubstr("257 states"));
  EXPECT_THAT(ErrorOfConfig(ScanConfig({{"conv_kernel", 65}})), HasSubstr("65 inputs"));
  EXPECT_THAT(ErrorOfConfig(ScanConfig({{"hidden_act", "softplus"}})), HasSubstr("hidden_act"));
}

TEST(Mixers, Conv_SomeLayers) {
  const DecoderSpec spec = Read(ConvConfig());
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 0, 1, 0));
  const LayerKindSpec &conv = spec.kinds.at(0), &attention = spec.kinds.at(1);
  EXPECT_EQ(Mixer::kConv, conv.mixer);
  EXPECT_EQ(2048u, conv.mixer_width);
  EXPECT_EQ(3u, conv.conv_taps);
  EXPECT_FALSE(conv.has_mixer_in_bias || conv.has_conv_bias || conv.has_qk_norm);
  EXPECT_EQ(0u, conv.n_heads);
  EXPECT_EQ(4096u, conv.state_floats());
  EXPECT_EQ(Mixer::kAttention, attention.mixer);
  EXPECT_TRUE(attention.has_qk_norm);
  EXPECT_EQ(32u, attention.n_heads);
  EXPECT_EQ(64u, attention.head_dim);
  // Two thirds of 12288, rounded up to a multiple of 256.
  EXPECT_EQ(8192u, conv.ffn_dim);
  EXPECT_EQ(8192u, attention.ffn_dim);
  EXPECT_TRUE(spec.tied);
  EXPECT_FALSE(Read(ConvConfig({{"tie_embedding", false}})).tied);
}

TEST(Mixers, Conv_LayerTypesComeFirst) {
  const nlohmann::json types = {"full_attention", "conv", "conv", "full_attention"};
  EXPECT_THAT(Read(ConvConfig({{"layer_types", types}})).layer_kinds, ElementsAre(0, 1, 1, 0));
  // Without either key every layer has attention.
  EXPECT_THAT(Read(ConvConfig({{"full_attn_idxs", nullptr}})).layer_kinds, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(ErrorOfConfig(ConvConfig({{"layer_types", {"conv"}}})), HasSubstr("layer_types"));
  EXPECT_THAT(ErrorOfConfig(ConvConfig({{"layer_types", {"conv", "conv", "conv", "mamba"}}})),
              HasSubstr("layer_types"));
  EXPECT_THAT(ErrorOfConfig(ConvConfig({{"full_attn_idxs", {4}}})), HasSubstr("full_attn_idxs"));
}

TEST(Mixers, Conv_FeedForwardWidths) {
  const auto width = [](const nlohmann::json& changes) {
    return Read(ConvConfig(changes)).kinds[0].ffn_dim;
  };
  EXPECT_EQ(12288u, width({{"block_auto_adjust_ff_dim", false}}));
  EXPECT_EQ(8200u, width({{"block_multiple_of", 100}}));
  EXPECT_EQ(10752u, width({{"block_ffn_dim_multiplier", 1.3}}));
  EXPECT_EQ(6912u, width({{"block_ff_dim", nullptr}, {"intermediate_size", 10240}}));
  EXPECT_THAT(ErrorOfConfig(ConvConfig({{"block_ffn_dim_multiplier", -1.0}})),
              HasSubstr("block_ffn_dim_multiplier"));
}

TEST(Mixers, KvGeometry_CountsWhatKeepsKeys) {
  const KvGeometry conv = ReadKvGeometry(ConvConfig(), "config.json");
  ASSERT_EQ(1u, conv.groups.size());
  EXPECT_EQ(1u, conv.groups[0].n_layers);
  ASSERT_EQ(1u, conv.states.size());
  EXPECT_EQ(3u, conv.states[0].n_layers);
  EXPECT_EQ(49152u, 3 * conv.states[0].state_floats * sizeof(float));
  EXPECT_THAT(conv.notes, ElementsAre(HasSubstr("3 layers keep a recurrent state instead")));
  const KvGeometry scan = ReadKvGeometry(ScanConfig(), "config.json");
  EXPECT_TRUE(scan.groups.empty());
  ASSERT_EQ(1u, scan.states.size());
  EXPECT_EQ(2u, scan.states[0].n_layers);
  EXPECT_EQ(233472u, 2 * scan.states[0].state_floats * sizeof(float));
  EXPECT_THAT(scan.notes, ElementsAre(HasSubstr("2 layers keep a recurrent state instead")));
}

}  // namespace
}  // namespace arn::convert
