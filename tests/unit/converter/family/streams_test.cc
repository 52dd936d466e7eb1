// Configs of layers with residual streams, low-rank residuals and sparse gates.
#include "converter/family/streams.h"

#include "converter/family/families.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::ErrorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The keys of Gemma 3n E2B, with fewer layers.
nlohmann::json Config(const nlohmann::json& changes = {}) {
  nlohmann::json config = {{"architectures", {"Gemma3nForCausalLM"}},
                           {"model_type", "gemma3n_text"},
                           {"vocab_size", 262400},
                           {"vocab_size_per_layer_input", 262144},
                           {"hidden_size", 2048},
                           {"hidden_size_per_layer_input", 256},
                           {"intermediate_size", {8192, 8192, 8192, 8192, 8192, 8192}},
                           {"num_hidden_layers", 6},
                           {"num_attention_heads", 8},
                           {"num_key_value_heads", 2},
                           {"head_dim", 256},
                           {"num_kv_shared_layers", 1},
                           {"laurel_rank", 64},
                           {"altup_num_inputs", 4},
                           {"altup_active_idx", 0},
                           {"altup_coef_clip", 120.0},
                           {"altup_correct_scale", true},
                           {"activation_sparsity_pattern", {0.95, 0.5, 0.25, 0.0, -1.0, 0.0}},
                           {"rope_theta", 1000000.0},
                           {"rope_local_base_freq", 10000.0},
                           {"sliding_window", 512}};
  if (!changes.is_null()) config.merge_patch(changes);
  return config;
}

DecoderSpec Read(const nlohmann::json& config) {
  std::vector<std::string> warnings;
  DecoderSpec spec = ReadDecoderSpec(config, "config.json", &warnings);
  EXPECT_THAT(warnings, IsEmpty());
  return spec;
}

std::string ErrorOfConfig(const nlohmann::json& changes) {
  return ErrorOf([&] { Read(Config(changes)); });
}

const LayerKindSpec& KindOf(const DecoderSpec& spec, size_t layer) {
  return spec.kinds[spec.layer_kinds[layer]];
}

TEST(Streams, WhatTheConfigSays) {
  const DecoderSpec spec = Read(Config());
  EXPECT_EQ(4u, spec.streams.n);
  EXPECT_EQ(0u, spec.streams.active);
  EXPECT_TRUE(spec.streams.has_scale);
  EXPECT_FLOAT_EQ(1e-5f, spec.streams.epsilon);
  EXPECT_EQ(256u, spec.per_layer_width);
  EXPECT_EQ(262144u, spec.per_layer_rows);
  EXPECT_FLOAT_EQ(30.0f, spec.logits_softcap);
  // The fifth layer alone has no window, so it shares nothing; the sixth uses the fourth's.
  EXPECT_THAT(spec.kv_layers, ElementsAre(0, 1, 2, 3, 4, 3));
  EXPECT_EQ(512u, KindOf(spec, 3).window);
  EXPECT_EQ(0u, KindOf(spec, 4).window);
  EXPECT_EQ(64u, KindOf(spec, 0).laurel_rank);
  EXPECT_FLOAT_EQ(0.70710678f, KindOf(spec, 0).attention_sum_factor);
  EXPECT_TRUE(KindOf(spec, 0).has_v_norm);
}

// The quantiles of the standard normal distribution, by tables.
TEST(Streams, Sparsity_IsAThreshold) {
  const DecoderSpec spec = Read(Config());
  EXPECT_TRUE(KindOf(spec, 0).has_gate_threshold);
  EXPECT_NEAR(1.6448536, KindOf(spec, 0).gate_threshold, 1e-6);
  EXPECT_TRUE(KindOf(spec, 1).has_gate_threshold);
  EXPECT_NEAR(0.0, KindOf(spec, 1).gate_threshold, 1e-6);
  EXPECT_NEAR(-0.6744898, KindOf(spec, 2).gate_threshold, 1e-6);
  for (const size_t dense : {3, 4, 5}) EXPECT_FALSE(KindOf(spec, dense).has_gate_threshold);
}

TEST(Streams, AbsentKeys_AreTheClasss) {
  nlohmann::json config = Config();
  for (const char* key : {"activation_sparsity_pattern", "num_kv_shared_layers", "laurel_rank",
                          "altup_num_inputs", "altup_active_idx", "altup_correct_scale"}) {
    config.erase(key);
  }
  config["num_hidden_layers"] = 35;
  config["intermediate_size"] = 16384;
  const DecoderSpec spec = Read(config);
  EXPECT_EQ(4u, spec.streams.n);
  EXPECT_TRUE(spec.streams.has_scale);
  EXPECT_EQ(64u, KindOf(spec, 0).laurel_rank);
  EXPECT_TRUE(KindOf(spec, 9).has_gate_threshold);
  EXPECT_FALSE(KindOf(spec, 10).has_gate_threshold);
  EXPECT_EQ(19u, spec.kv_layers[19]);
  EXPECT_EQ(18u, spec.kv_layers[20]);
  EXPECT_EQ(19u, spec.kv_layers[34]);
}

TEST(Streams, FeedForwardWidths_ByLayer) {
  const DecoderSpec spec =
      Read(Config({{"intermediate_size", {8192, 16384, 8192, 4096, 8192, 8192}}}));
  EXPECT_EQ(16384u, KindOf(spec, 1).ffn_dim);
  EXPECT_EQ(4096u, KindOf(spec, 3).ffn_dim);
}

TEST(Streams, WrongValues_AreRefusedByKey) {
  EXPECT_THAT(ErrorOfConfig({{"altup_num_inputs", 9}}), HasSubstr("altup_num_inputs: expected at"));
  EXPECT_THAT(ErrorOfConfig({{"altup_num_inputs", 0}}), HasSubstr("altup_num_inputs"));
  EXPECT_THAT(ErrorOfConfig({{"altup_active_idx", 4}}), HasSubstr("an index of the 4 streams"));
  EXPECT_THAT(ErrorOfConfig({{"altup_active_idx", -1}}), HasSubstr("an index of the 4 streams"));
  EXPECT_THAT(ErrorOfConfig({{"laurel_rank", 0}}), HasSubstr("laurel_rank"));
  EXPECT_THAT(ErrorOfConfig({{"activation_sparsity_pattern", {0.5}}}),
              HasSubstr("activation_sparsity_pattern: expected a list of 6 numbers below 1"));
  EXPECT_THAT(ErrorOfConfig({{"activation_sparsity_pattern", 0.5}}), HasSubstr("a list of 6"));
  EXPECT_THAT(ErrorOfConfig({{"activation_sparsity_pattern", {0, 0, 0, 0, 0, 1.0}}}),
              HasSubstr("numbers below 1"));
  EXPECT_THAT(ErrorOfConfig({{"intermediate_size", {8192, 8192}}}),
              HasSubstr("intermediate_size: expected a width, or a list of 6 widths"));
  EXPECT_THAT(ErrorOfConfig({{"hidden_size_per_layer_input", 0}}),
              HasSubstr("hidden_size_per_layer_input"));
  EXPECT_THAT(ErrorOfConfig({{"num_kv_shared_layers", 2}}), HasSubstr("num_kv_shared_layers"));
}

}  // namespace
}  // namespace arn::convert
