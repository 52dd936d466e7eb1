// Keys of layers that differ, of experts, RoPE and windows with odd values: what the config
// becomes, or the whole sentence of the error.
#include <cmath>

#include "tests/unit/converter/gguf/gguf_config_fixture.h"

namespace arn::convert {
namespace {

using ::testing::HasSubstr;

// Returns "m.gguf: KEY: expected EXPECTED, found FOUND".
std::string Expected(const std::string& key, const std::string& expected,
                     const std::string& found) {
  return "m.gguf: " + key + ": expected " + expected + ", found " + found;
}

// Keys of small models, after "ARCHITECTURE.".
const json kJamba = {{"attention.head_count_kv", {0, 2}},
                     {"expert_count", 4},
                     {"expert_used_count", 2},
                     {"ssm.conv_kernel", 3},
                     {"ssm.inner_size", 128},
                     {"ssm.state_size", 6},
                     {"ssm.time_step_rank", 4}};
const json kDeltaRule = {{"attention.head_count_kv", 2}, {"attention.key_length", 16},
                         {"ssm.conv_kernel", 4},         {"ssm.inner_size", 128},
                         {"ssm.state_size", 8},          {"ssm.group_count", 2},
                         {"ssm.time_step_rank", 4}};
const json kStreams = {{"altup.num_inputs", 4},
                       {"attention.head_count_kv", 2},
                       {"attention.sliding_window", 8},
                       {"attention.sliding_window_pattern", {true, false}},
                       {"activation_sparsity_scale", {0.0, 1.0}}};
const json kGlobalHeads = {{"attention.sliding_window", 8},
                           {"attention.sliding_window_pattern", {true, false}},
                           {"attention.head_count_kv", 2},
                           {"attention.key_length_swa", 16},
                           {"attention.key_length", 24}};
const json kLfm2Experts = {{"attention.head_count_kv", {0, 2}},
                           {"shortconv.l_cache", 3},
                           {"expert_count", 4},
                           {"expert_used_count", 2}};

json With(json keys, const json& more) {
  if (!more.is_null()) keys.update(more);
  return keys;
}

GgufFacts Having(const std::set<std::string>& tensors) {
  GgufFacts facts;
  facts.tensors = tensors;
  for (const std::string& name : tensors) facts.shapes[name] = {5, 7};
  return facts;
}
const GgufFacts kRouted =
    Having({"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.weight", "output.weight"});
const GgufFacts kLaurel = Having({"blk.0.laurel_l.weight"});

GgufFacts Rotating(size_t n, size_t pairs) {
  GgufFacts facts;
  facts.rope_factors.assign(pairs, 1e30f);
  std::fill_n(facts.rope_factors.begin(), n, 1.0f);
  return facts;
}

// A count of layers is memory and time: both readers bound it.
TEST(GgufOddKeys, Layers_AreBounded) {
  for (const auto& [arch, keys] :
       {std::pair("llama", json::object()), std::pair("qwen35", kDeltaRule)}) {
    SCOPED_TRACE(arch);
    const std::string key = arch + std::string(".block_count");
    for (const uint32_t n : {4097u, 2147483647u}) {
      EXPECT_EQ(Expected(key, "at most 4096", std::to_string(n)),
                ErrorOf(arch, With(keys, {{"block_count", n}})));
    }
    EXPECT_EQ(4096, ConfigOf(arch, With(keys, {{"block_count", 4096}}))["num_hidden_layers"]);
    EXPECT_EQ(1, ConfigOf(arch, With(keys, {{"block_count", 1}}))["num_hidden_layers"]);
    EXPECT_EQ(Expected(key, "a whole number above 0", "0"),
              ErrorOf(arch, With(keys, {{"block_count", 0}})));
  }
  EXPECT_EQ(Expected("glm4moe.nextn_predict_layers", "fewer than block_count", "2"),
            ErrorOf("glm4moe", {{"nextn_predict_layers", 2}, {"expert_count", 4}}, kRouted));
  EXPECT_EQ(Expected("qwen35.nextn_predict_layers", "less than block_count", "2"),
            ErrorOf("qwen35", With(kDeltaRule, {{"nextn_predict_layers", 2}})));
  const json one = ConfigOf("qwen35", With(kDeltaRule, {{"nextn_predict_layers", 1}}));
  EXPECT_EQ(1, one["num_hidden_layers"]);
  EXPECT_EQ(1, one["num_nextn_predict_layers"]);
  EXPECT_FALSE(ConfigOf("qwen35", kDeltaRule).contains("num_nextn_predict_layers"));
}

TEST(GgufOddKeys, Directions) {
  EXPECT_EQ(Expected("qwen35.attention.causal", "true", "false"),
            ErrorOf("qwen35", With(kDeltaRule, {{"attention.causal", false}})));
  EXPECT_EQ(Expected("bert.attention.causal", "false", "true"),
            ErrorOf("bert", {{"attention.causal", true}}, Having({"token_types.weight"})));
  EXPECT_EQ(5, ConfigOf("bert", {}, Having({"token_types.weight"}))["type_vocab_size"]);
  GgufFacts unshaped;
  unshaped.tensors = {"token_types.weight"};
  EXPECT_EQ(1, ConfigOf("bert", {}, unshaped)["type_vocab_size"]);
}

TEST(GgufOddKeys, Epsilons) {
  EXPECT_EQ(Expected("qwen35.attention.layer_norm_rms_epsilon", "a number", "nothing"),
            ErrorOf("qwen35", With(kDeltaRule, {{"attention.layer_norm_rms_epsilon", json()},
                                                {"attention.layer_norm_epsilon", json()}})));
  const json other = With(kDeltaRule, {{"attention.layer_norm_rms_epsilon", json()}});
  EXPECT_EQ(0.25, ConfigOf("qwen35", other)["rms_norm_eps"]);
  EXPECT_EQ(0.5, ConfigOf("qwen35", kDeltaRule)["rms_norm_eps"]);
}

// An attention that comes once in n layers.
TEST(GgufOddKeys, Periods) {
  const auto with = [](const std::vector<uint32_t>& kv_heads) {
    return With(kJamba, {{"block_count", kv_heads.size()}, {"attention.head_count_kv", kv_heads}});
  };
  const auto expect = [&](const std::vector<uint32_t>& kv_heads, uint32_t period, uint32_t offset) {
    const json config = ConfigOf("jamba", with(kv_heads));
    EXPECT_EQ(period, config["attn_layer_period"]);
    EXPECT_EQ(offset, config["attn_layer_offset"]);
  };
  expect({0, 2}, 2, 1);
  expect({2, 0, 0}, 3, 0);
  expect({0, 2, 0, 2, 0}, 2, 1);
  expect({0, 0, 2, 0, 0}, 5, 2);
  expect({2, 2, 2}, 1, 0);
  // Without attention the first such layer is behind the last.
  expect({0, 0}, 2, 2);
  EXPECT_EQ(4, ConfigOf("jamba", with({0, 0}))["num_key_value_heads"]);
  EXPECT_EQ(2, ConfigOf("jamba", with({0, 2}))["num_key_value_heads"]);
  const char* const even = "layers at equal distances";
  const char* const heads = "jamba.attention.head_count_kv";
  EXPECT_EQ(Expected(heads, even, "[0,2,2,0]"), ErrorOf("jamba", with({0, 2, 2, 0})));
  EXPECT_EQ(Expected(heads, even, "[2,0,2,2]"), ErrorOf("jamba", with({2, 0, 2, 2})));
  EXPECT_EQ(Expected(heads, "0 or the same number for each layer", "[2,4]"),
            ErrorOf("jamba", with({2, 4})));
  // The layers with experts come from the tensors.
  const json experts = ConfigOf("jamba", kJamba, Having({"blk.1.ffn_gate_inp.weight"}));
  EXPECT_EQ(2, experts["expert_layer_period"]);
  EXPECT_EQ(1, experts["expert_layer_offset"]);
  EXPECT_FALSE(ConfigOf("jamba", kJamba).contains("expert_layer_period"));
  EXPECT_EQ(Expected("jamba.expert_count", even, "4"),
            ErrorOf("jamba", with({0, 2, 0, 0}),
                    Having({"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.weight"})));
}

TEST(GgufOddKeys, Scans) {
  const json config = ConfigOf("jamba", kJamba);
  EXPECT_EQ(3, config["mamba_d_conv"]);
  EXPECT_EQ(6, config["mamba_d_state"]);
  EXPECT_EQ(4, config["mamba_dt_rank"]);
  EXPECT_EQ(2, config["mamba_expand"]);
  EXPECT_EQ(false, config["mamba_proj_bias"]);
  EXPECT_EQ(false, config["mamba_conv_bias"]);
  const json biased =
      ConfigOf("jamba", kJamba, Having({"blk.1.ssm_in.bias", "blk.0.ssm_conv1d.bias"}));
  EXPECT_EQ(true, biased["mamba_proj_bias"]);
  EXPECT_EQ(true, biased["mamba_conv_bias"]);
  EXPECT_EQ(Expected("jamba.ssm.inner_size", "a multiple of embedding_length", "129"),
            ErrorOf("jamba", With(kJamba, {{"ssm.inner_size", 129}})));
}

TEST(GgufOddKeys, DeltaRule) {
  const json full = "full_attention", linear = "linear_attention";
  const auto types = [](const json& more) {
    return ConfigOf("qwen35", With(kDeltaRule, more))["layer_types"];
  };
  EXPECT_EQ(json({linear, linear, linear, full, linear}), types({{"block_count", 5}}));
  EXPECT_EQ(json({linear, full, linear}),
            types({{"block_count", 3}, {"full_attention_interval", 2}}));
  EXPECT_EQ(json({full, linear}), types({{"attention.recurrent_layers", {false, true}}}));
  EXPECT_EQ(Expected("qwen35.attention.recurrent_layers", "true or false for each layer", "[true]"),
            ErrorOf("qwen35", With(kDeltaRule, {{"attention.recurrent_layers", {true}}})));
  EXPECT_EQ(Expected("qwen35.ssm.inner_size",
                     "a multiple of ssm.time_step_rank, the number of heads", "130"),
            ErrorOf("qwen35", With(kDeltaRule, {{"ssm.inner_size", 130}})));
  const json config = ConfigOf("qwen35", kDeltaRule);
  EXPECT_EQ(32, config["linear_value_head_dim"]);
  EXPECT_EQ(4, config["linear_num_value_heads"]);
  EXPECT_EQ(8, config["linear_key_head_dim"]);
  EXPECT_EQ(2, config["linear_num_key_heads"]);
  EXPECT_EQ(1.0, config["partial_rotary_factor"]);
  EXPECT_EQ(
      8.5 / 16,
      ConfigOf("qwen35", With(kDeltaRule, {{"rope.dimension_count", 8}}))["partial_rotary_factor"]);
  EXPECT_EQ(Expected("qwen35.rope.dimension_count", "16", "18"),
            ErrorOf("qwen35", With(kDeltaRule, {{"rope.dimension_count", 18}})));
  EXPECT_EQ(Expected("qwen35.attention.value_length", "attention.key_length, which is 16", "8"),
            ErrorOf("qwen35", With(kDeltaRule, {{"attention.value_length", 8}})));
  EXPECT_EQ(16,
            ConfigOf("qwen35", With(kDeltaRule, {{"attention.key_length", json()}}))["head_dim"]);
  EXPECT_EQ(
      Expected("qwen35.attention.head_count_kv", "0 or the same number for each layer", "[2,4]"),
      ErrorOf("qwen35", With(kDeltaRule, {{"attention.head_count_kv", {2, 4}}})));
}

TEST(GgufOddKeys, BiasesOfSomeLayer) {
  const json numbers = With(kDeltaRule, {});
  for (const char* bias : {"blk.0.attn_q.bias", "blk.1.attn_output.bias"}) {
    EXPECT_EQ(true, ConfigOf("qwen35", numbers, Having({bias}))["attention_bias"]) << bias;
  }
  for (const char* other : {"blk.2.attn_q.bias", "blk.0.attn_k.bias", "output.weight"}) {
    EXPECT_EQ(false, ConfigOf("qwen35", numbers, Having({other}))["attention_bias"]) << other;
  }
}

TEST(GgufOddKeys, FeedForwardWidths) {
  const auto with = [](const json& widths) {
    return With(kDeltaRule, {{"feed_forward_length", widths}});
  };
  EXPECT_EQ(96, ConfigOf("qwen35", with({0, 96}))["intermediate_size"]);
  EXPECT_EQ(96, ConfigOf("qwen35", with({96, 0}))["intermediate_size"]);
  const char* const key = "qwen35.feed_forward_length";
  EXPECT_EQ(Expected(key, "0 or the same number for each layer", "[96,97]"),
            ErrorOf("qwen35", with({96, 97})));
  const char* const each = "a number for each layer";
  EXPECT_EQ(Expected(key, each, "[96]"), ErrorOf("qwen35", with(json::array({96}))));
  EXPECT_EQ(Expected(key, each, "[96,-1]"), ErrorOf("qwen35", with({96, -1})));
  EXPECT_EQ(Expected(key, each, "[96,2147483648]"), ErrorOf("qwen35", with({96, 2147483648})));
  EXPECT_EQ(Expected(key, each, "[96,96.5]"), ErrorOf("qwen35", with({96, 96.5})));
  // A number behind the last layer's is read, and means nothing.
  EXPECT_EQ(96, ConfigOf("qwen35", with({96, 96, 7}))["intermediate_size"]);
  EXPECT_EQ(Expected(key, each, "[96,96,-1]"), ErrorOf("qwen35", with({96, 96, -1})));
  EXPECT_EQ(2147483647, ConfigOf("qwen35", with({0, 2147483647}))["intermediate_size"]);
}

TEST(GgufOddKeys, WidthsOfLayersThatShareKeys) {
  const GgufFacts facts = Rotating(6, 12);
  const auto config = [&](const json& widths, uint32_t shared) {
    return ConfigOf(
        "gemma4",
        With(kGlobalHeads, {{"block_count", 4},
                            {"attention.sliding_window_pattern", {true, false, true, false}},
                            {"feed_forward_length", widths},
                            {"attention.shared_kv_layers", shared}}),
        facts);
  };
  EXPECT_EQ(true, config({5, 5, 10, 10}, 2)["use_double_wide_mlp"]);
  EXPECT_EQ(5, config({5, 5, 10, 10}, 2)["intermediate_size"]);
  EXPECT_EQ(false, config({5, 5, 5, 5}, 2)["use_double_wide_mlp"]);
  EXPECT_EQ(false, config(5, 0)["use_double_wide_mlp"]);
  for (const auto& [widths, shared] : {std::pair(json({5, 5, 10, 10}), 0u),
                                       {json({5, 5, 10, 10}), 1u},
                                       {json({5, 10, 10, 10}), 2u},
                                       {json({5, 5, 9, 10}), 2u},
                                       {json({5, 5, 5, 6}), 2u}}) {
    EXPECT_EQ(Expected("gemma4.feed_forward_length",
                       "one number, or twice that in the layers that share keys", widths.dump()),
              test::ErrorOf([&, w = widths, s = shared] { config(w, s); }));
  }
}

TEST(GgufOddKeys, GlobalHeads) {
  const GgufFacts facts = Rotating(6, 12);
  const json config = ConfigOf("gemma4", kGlobalHeads, facts);
  EXPECT_EQ(16, config["head_dim"]);
  EXPECT_EQ(24, config["global_head_dim"]);
  EXPECT_EQ(2, config["num_key_value_heads"]);
  EXPECT_EQ(2, config["num_global_key_value_heads"]);
  EXPECT_EQ(false, config["attention_k_eq_v"]);
  EXPECT_EQ(12.5 / 24, config["rope_parameters"]["full_attention"]["partial_rotary_factor"]);
  const auto with = [&](const json& more) { return With(kGlobalHeads, more); };
  const json own = ConfigOf("gemma4", with({{"attention.head_count_kv", {4, 1}}}), facts);
  EXPECT_EQ(4, own["num_key_value_heads"]);
  EXPECT_EQ(1, own["num_global_key_value_heads"]);
  const json local =
      ConfigOf("gemma4", with({{"attention.sliding_window_pattern", {true, true}}}), facts);
  EXPECT_FALSE(local.contains("num_global_key_value_heads"));
  EXPECT_EQ(1, ConfigOf("gemma4",
                        with({{"attention.sliding_window_pattern", {false, false}},
                              {"attention.head_count_kv", 1}}),
                        facts)["num_key_value_heads"]);
  const char* const kv = "the same number for all layers with a window, and for all without";
  EXPECT_EQ(Expected("gemma4.attention.head_count_kv", kv, "[2,0]"),
            ErrorOf("gemma4", with({{"attention.head_count_kv", {2, 0}}}), facts));
  EXPECT_EQ(Expected("gemma4.attention.head_count_kv", kv, "[2,1]"),
            ErrorOf("gemma4",
                    with({{"attention.head_count_kv", {2, 1}},
                          {"attention.sliding_window_pattern", {true, true}}}),
                    facts));
  EXPECT_EQ(Expected("gemma4.attention.sliding_window_pattern", "true or false for each layer",
                     "nothing"),
            ErrorOf("gemma4", with({{"attention.sliding_window_pattern", json()}}), facts));
  for (const auto& [key, dim] : {std::pair("attention.value_length_swa", "16"),
                                 {"attention.value_length", "24"},
                                 {"rope.dimension_count_swa", "16"},
                                 {"rope.dimension_count", "24"}}) {
    EXPECT_EQ(Expected(std::string("gemma4.") + key, dim, "17"),
              ErrorOf("gemma4", with({{key, 17}}), facts));
  }
  // Keys are values in layers without a window that have no matrix for the latter.
  const auto k_is_v = [&](const std::set<std::string>& tensors) {
    GgufFacts having = facts;
    having.tensors = tensors;
    return ConfigOf("gemma4", kGlobalHeads, having)["attention_k_eq_v"];
  };
  EXPECT_EQ(true, k_is_v({"blk.1.attn_k.weight"}));
  EXPECT_EQ(false, k_is_v({"blk.0.attn_k.weight"}));
  EXPECT_EQ(false, k_is_v({"blk.1.attn_k.weight", "blk.1.attn_v.weight"}));
}

TEST(GgufOddKeys, RotatedParts) {
  const auto part = [](const GgufFacts& facts) -> json {
    return ConfigOf("gemma4", kGlobalHeads,
                    facts)["rope_parameters"]["full_attention"]["partial_rotary_factor"];
  };
  EXPECT_EQ(24.5 / 24, part(Rotating(12, 12)));
  EXPECT_EQ(0.5 / 24, part(Rotating(0, 12)));
  const char* const expected =
      "m.gguf: tensor rope_freqs.weight: expected 12 factors, ones and then 1e30";
  GgufFacts odd = Rotating(6, 12);
  odd.rope_factors[11] = 9e29f;
  for (const GgufFacts& facts : {GgufFacts(), Rotating(6, 11), Rotating(6, 13), odd}) {
    EXPECT_EQ(expected, ErrorOf("gemma4", kGlobalHeads, facts));
  }
}

TEST(GgufOddKeys, Streams) {
  const json config = ConfigOf("gemma3n", kStreams, kLaurel);
  EXPECT_EQ(4, config["altup_num_inputs"]);
  EXPECT_EQ(0, config["altup_active_idx"]);
  EXPECT_EQ(5, config["laurel_rank"]);
  EXPECT_EQ(false, config["altup_correct_scale"]);
  EXPECT_EQ(true, ConfigOf("gemma3n", kStreams,
                           Having({"blk.0.laurel_l.weight",
                                   "blk.1.altup_correct_scale.weight"}))["altup_correct_scale"]);
  // The normal distribution's: those of few digits are exact.
  EXPECT_EQ(json({0.5, 0.5 * std::erfc(-1.0 / std::sqrt(2.0))}),
            config["activation_sparsity_pattern"]);
  EXPECT_EQ(json({0.9, 0.05}),
            ConfigOf("gemma3n",
                     With(kStreams, {{"activation_sparsity_scale",
                                      {double(1.2815516f), double(-1.6448536f)}}}),
                     kLaurel)["activation_sparsity_pattern"]);
  EXPECT_EQ("m.gguf: tensor blk.0.laurel_l.weight is missing", ErrorOf("gemma3n", kStreams));
  for (const json& bad : {json(), json(1), json{1.0}, json{1.0, 1.0, 1.0}, json{1.0, "1"}}) {
    EXPECT_EQ(Expected("gemma3n.activation_sparsity_scale", "a number for each layer",
                       bad.is_null() ? "nothing" : bad.dump()),
              ErrorOf("gemma3n", With(kStreams, {{"activation_sparsity_scale", bad}}), kLaurel));
  }
  EXPECT_EQ(json({96, 96}), config["intermediate_size"]);
  // The table of the published models is padded to 262400 rows.
  for (const auto& [vocab, rows] : {std::pair(262400u, 262144u), {262399u, 262399u}}) {
    GgufFacts facts = kLaurel;
    facts.vocab = vocab;
    EXPECT_EQ(rows, ConfigOf("gemma3n", kStreams, facts)["vocab_size_per_layer_input"]);
  }
  GgufFacts other = Rotating(6, 12);
  other.vocab = 262400;
  EXPECT_EQ(262400, ConfigOf("gemma4", kGlobalHeads, other)["vocab_size_per_layer_input"]);
}

TEST(GgufOddKeys, RoutingOfHybrids) {
  const auto jamba = [](const json& more) { return With(kJamba, more); };
  const auto lfm2 = [](const json& more) { return With(kLfm2Experts, more); };
  EXPECT_EQ(Expected("jamba.expert_weights_norm", "false", "true"),
            ErrorOf("jamba", jamba({{"expert_weights_norm", true}})));
  EXPECT_EQ(4, ConfigOf("jamba", jamba({{"expert_weights_norm", false}}))["num_experts"]);
  EXPECT_EQ(Expected("jamba.expert_gating_func", "1 (softmax)", "2"),
            ErrorOf("jamba", jamba({{"expert_gating_func", 2}})));
  EXPECT_EQ(4, ConfigOf("jamba", jamba({{"expert_gating_func", 1}}))["num_experts"]);
  EXPECT_EQ(Expected("lfm2moe.expert_gating_func", "2 (sigmoid)", "1"),
            ErrorOf("lfm2moe", lfm2({{"expert_gating_func", 1}}), kRouted));
  EXPECT_EQ(4, ConfigOf("lfm2moe", lfm2({{"expert_gating_func", 2}}), kRouted)["num_experts"]);
  EXPECT_EQ(Expected("jamba.expert_weights_scale", "1", "2.5"),
            ErrorOf("jamba", jamba({{"expert_weights_scale", 2.5}})));
  for (const double same : {0.0, 1.0}) {
    EXPECT_EQ(4, ConfigOf("jamba", jamba({{"expert_weights_scale", same}}))["num_experts"]);
  }
  const auto factor = [&](const json& more) {
    return ConfigOf("lfm2moe", lfm2(more), kRouted)["routed_scaling_factor"];
  };
  EXPECT_EQ(1.0, factor({}));
  EXPECT_EQ(1.0, factor({{"expert_weights_scale", 0.0}}));
  EXPECT_EQ(2.5, factor({{"expert_weights_scale", 2.5}}));
  EXPECT_EQ(true, ConfigOf("lfm2moe", kLfm2Experts, kRouted)["norm_topk_prob"]);
  EXPECT_EQ(false,
            ConfigOf("lfm2moe", lfm2({{"expert_weights_norm", false}}), kRouted)["norm_topk_prob"]);
  EXPECT_EQ(false, ConfigOf("lfm2moe", kLfm2Experts, kRouted)["use_expert_bias"]);
  EXPECT_EQ(
      true,
      ConfigOf("lfm2moe", kLfm2Experts,
               Having({"blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias"}))["use_expert_bias"]);
  EXPECT_EQ(3, ConfigOf("lfm2moe", lfm2({{"leading_dense_block_count", 3}}),
                        kRouted)["num_dense_layers"]);
  EXPECT_EQ(0, ConfigOf("lfm2moe", kLfm2Experts, kRouted)["num_dense_layers"]);
  // Without a key the experts are as wide as blocks.
  EXPECT_EQ(96, ConfigOf("lfm2moe", kLfm2Experts, kRouted)["moe_intermediate_size"]);
  EXPECT_EQ(40, ConfigOf("lfm2moe", lfm2({{"expert_feed_forward_length", 40}}),
                         kRouted)["moe_intermediate_size"]);
  // A softmax whose weights are always divided by their sum.
  const json granite = With(kDeltaRule, {{"expert_count", 4}, {"expert_used_count", 2}});
  EXPECT_EQ(Expected("granitehybrid.expert_weights_norm", "true", "false"),
            ErrorOf("granitehybrid", With(granite, {{"expert_weights_norm", false}}), kRouted));
  EXPECT_EQ(4, ConfigOf("granitehybrid", With(granite, {{"expert_weights_norm", true}}),
                        kRouted)["num_local_experts"]);
  // No experts, whatever the other keys say.
  const json none = ConfigOf("granitehybrid", With(kDeltaRule, {{"expert_used_count", 2}}));
  EXPECT_EQ(0, none["num_local_experts"]);
  EXPECT_FALSE(none.contains("num_experts_per_tok"));
}

// The keys of experts of a decoder, which says which layers have them in one of several ways.
TEST(GgufOddKeys, RoutingOfDecoders) {
  const json experts = {{"expert_count", 4}, {"expert_used_count", 2}};
  EXPECT_EQ(Expected("llama4.expert_weights_norm", "false", "true"),
            ErrorOf("llama4", With(experts, {{"expert_weights_norm", true}})));
  EXPECT_EQ(Expected("llama.expert_group_count", "expert_group_used_count", "4"),
            ErrorOf("llama", With(experts, {{"expert_group_count", 4}})));
  EXPECT_EQ(
      4, ConfigOf("llama", With(experts, {{"expert_group_count", 2},
                                          {"expert_group_used_count", 2}}))["num_local_experts"]);
  EXPECT_EQ(Expected("llama.expert_shared_count", "0", "1"),
            ErrorOf("llama", With(experts, {{"expert_shared_count", 1}})));
  EXPECT_EQ(Expected("llama.expert_shared_feed_forward_length", "0", "95"),
            ErrorOf("llama", With(experts, {{"expert_shared_feed_forward_length", 95}})));
  EXPECT_EQ(
      4, ConfigOf("llama",
                  With(experts, {{"expert_shared_feed_forward_length", 96}}))["num_local_experts"]);
  EXPECT_EQ(4,
            ConfigOf("llama", With(experts, {{"expert_weights_scale", 0.0}}))["num_local_experts"]);
  EXPECT_EQ(4,
            ConfigOf("llama", With(experts, {{"expert_weights_scale", 1.0}}))["num_local_experts"]);
}

TEST(GgufOddKeys, WindowsOfTheUser) {
  GgufFacts none;
  none.window = 0;
  // No window is what files of such families mean, too.
  const json config = ConfigOf("gemma3", {}, none);
  EXPECT_EQ(json(), config["sliding_window"]);
  EXPECT_EQ(json({"full_attention", "full_attention"}), config["layer_types"]);
  EXPECT_EQ(64, ConfigOf("qwen3", {}, none)["hidden_size"]);
  GgufFacts some;
  some.window = 1;
  EXPECT_EQ("m.gguf: --window 1: files of qwen3 have no window, or say which layers have one",
            ErrorOf("qwen3", {}, some));
  EXPECT_EQ("m.gguf: --window 0: the file has its own: phi3.attention.sliding_window is 16",
            ErrorOf("phi3", {{"attention.sliding_window", 16}}, none));
  EXPECT_EQ(2147483647,
            ConfigOf("phi3", {{"attention.sliding_window", 2147483647}})["sliding_window"]);
  EXPECT_EQ(1, ConfigOf("phi3", {{"attention.sliding_window", 1}})["sliding_window"]);
  EXPECT_EQ(json(), ConfigOf("phi3", {{"attention.sliding_window", 0}})["sliding_window"]);
}

// Alpha scales the base by a power of dim / (dim - 2).
TEST(GgufOddKeys, RopeAlpha) {
  const auto config = [](uint32_t head_dim, double base) {
    return ConfigOf("hunyuan-dense",
                    {{"attention.key_length", head_dim}, {"rope.freq_base", base}});
  };
  for (const double alpha : {1000.0, 50.0}) {
    const json scaled = config(16, double(float(10000.0 * std::pow(alpha, 16 / 14.0))));
    EXPECT_EQ(10000.0, scaled["rope_theta"]);
    EXPECT_EQ(json({{"rope_type", "dynamic"}, {"alpha", alpha}, {"factor", 1.0}}),
              scaled["rope_scaling"]);
  }
  for (const uint32_t head_dim : {1u, 2u, 4u, 16u}) {
    const json plain = config(head_dim, 20000.0);
    EXPECT_EQ(20000.0, plain["rope_theta"]) << head_dim;
    EXPECT_FALSE(plain.contains("rope_scaling")) << head_dim;
  }
  const json three = config(3, double(float(10000.0 * std::pow(50.0, 3.0))));
  EXPECT_EQ(10000.0, three["rope_theta"]);
}

TEST(GgufOddKeys, RopeByType) {
  const json experts = {{"expert_count", 4},
                        {"expert_used_count", 2},
                        {"attention.sliding_window", 8},
                        {"attention.sliding_window_pattern", {true, false}}};
  const json config = ConfigOf("mellum", experts, kRouted)["rope_parameters"];
  EXPECT_EQ(json({{"rope_type", "default"}, {"rope_theta", 10000.0}}), config["full_attention"]);
  EXPECT_EQ(config["full_attention"], config["sliding_attention"]);
  const json scaled = ConfigOf("mellum",
                               With(experts, {{"rope.scaling.type", "yarn"},
                                              {"rope.scaling.factor", 4.0},
                                              {"rope.freq_base", 2e4},
                                              {"rope.freq_base_swa", 3e4}}),
                               kRouted)["rope_parameters"];
  EXPECT_EQ(json({{"rope_type", "yarn"}, {"factor", 4.0}, {"rope_theta", 2e4}}),
            scaled["full_attention"]);
  EXPECT_EQ(json({{"rope_type", "default"}, {"rope_theta", 3e4}}), scaled["sliding_attention"]);
}

// A factor without a type, and an old key.
TEST(GgufOddKeys, RopeScaling) {
  const auto scaling = [](const json& keys) -> json {
    const json config = ConfigOf("llama", keys);
    return config.value("rope_scaling", json());
  };
  EXPECT_EQ(json({{"rope_type", "linear"}, {"factor", 2.0}}),
            scaling({{"rope.scaling.type", "linear"},
                     {"rope.scaling.factor", 2.0},
                     {"rope.scale_linear", 4.0}}));
  EXPECT_EQ(json({{"rope_type", "linear"}, {"factor", 0.5}}),
            scaling({{"rope.scale_linear", 0.5}}));
  EXPECT_EQ(json(), scaling({{"rope.scaling.attn_factor", 1.0}}));
  EXPECT_EQ(Expected("llama.rope.scaling.attn_factor", "1 (longrope may have others)", "0.5"),
            ErrorOf("llama", {{"rope.scaling.attn_factor", 0.5}}));
  EXPECT_EQ(json({{"rope_type", "yarn"}, {"truncate", true}}),
            scaling({{"rope.scaling.type", "yarn"}, {"rope.scaling.yarn_truncate", true}}));
  EXPECT_EQ(json({{"rope_type", "yarn"}, {"beta_slow", 2.0}, {"attention_factor", 3.0}}),
            scaling({{"rope.scaling.type", "yarn"},
                     {"rope.scaling.yarn_beta_slow", 2.0},
                     {"rope.scaling.yarn_attn_factor", 3.0}}));
  EXPECT_EQ(Expected("llama.rope.scaling.type", "none, linear, yarn or longrope", "\"odd\""),
            ErrorOf("llama", {{"rope.scaling.type", "odd"}}));
  // Temperature goes with YaRN only.
  const json ministral = {{"attention.temperature_scale", 0.1}};
  EXPECT_EQ(Expected("mistral3.rope.scaling.type", "yarn", "nothing"),
            ErrorOf("mistral3", ministral));
  EXPECT_EQ(json({{"rope_type", "yarn"}, {"llama_4_scaling_beta", 0.1}}),
            ConfigOf("mistral3", With(ministral, {{"rope.scaling.type", "yarn"}}))["rope_scaling"]);
  const json mscale = ConfigOf(
      "mistral3", With(ministral, {{"rope.scaling.type", "yarn"},
                                   {"rope.scaling.yarn_log_multiplier", 0.5}}))["rope_scaling"];
  EXPECT_EQ(0.5, mscale["mscale"]);
  EXPECT_EQ(0.5, mscale["mscale_all_dim"]);
}

// Which of the rows of one name a file is of.
TEST(GgufOddKeys, RowsOfOneName) {
  const auto row = [](const char* name, const GgufTraits& traits) -> std::string {
    const GgufArchitecture* found = FindGgufArchitecture(name, traits);
    return found == nullptr ? "none" : found->architecture;
  };
  EXPECT_EQ("none", row("llam", {}));
  EXPECT_EQ("none", row("", {}));
  EXPECT_EQ("LlamaForCausalLM", row("llama", {}));
  EXPECT_EQ("MistralForCausalLM", row("llama", {.has_window = true}));
  EXPECT_EQ("MixtralForCausalLM", row("llama", {.has_experts = true}));
  // Experts say more than all else together.
  EXPECT_EQ("MixtralForCausalLM", row("llama", {.has_experts = true,
                                                .has_window = true,
                                                .stores_window = true,
                                                .corrects_router = true,
                                                .has_shared_expert = true,
                                                .fuses_qkv = true,
                                                .has_temperature = true,
                                                .has_token_types = true}));
  EXPECT_EQ("LlamaForCausalLM", row("llama", {.stores_window = true,
                                              .corrects_router = true,
                                              .has_shared_expert = true,
                                              .fuses_qkv = true,
                                              .has_temperature = true,
                                              .has_token_types = true}));
  EXPECT_EQ("Olmo2ForCausalLM", row("olmo2", {}));
  EXPECT_EQ("Olmo3ForCausalLM", row("olmo2", {.stores_window = true}));
  EXPECT_EQ("MistralForCausalLM", row("mistral3", {}));
  EXPECT_EQ("Ministral3ForCausalLM", row("mistral3", {.has_temperature = true}));
  EXPECT_EQ("GraniteMoeForCausalLM", row("granitemoe", {.has_experts = true}));
  EXPECT_EQ("GraniteMoeSharedForCausalLM",
            row("granitemoe", {.has_experts = true, .has_shared_expert = true}));
  EXPECT_EQ("BertModel", row("bert", {.has_token_types = true}));
  EXPECT_EQ("DistilBertModel", row("bert", {}));
  EXPECT_EQ("YoutuForCausalLM", row("deepseek2", {}));
  EXPECT_EQ("DeepseekV2ForCausalLM",
            row("deepseek2", {.has_experts = true, .has_shared_expert = true}));
  const GgufTraits third = {
      .has_experts = true, .corrects_router = true, .has_shared_expert = true, .layers = 61};
  EXPECT_EQ("DeepseekV3ForCausalLM", row("deepseek2", third));
  GgufTraits lite = third;
  lite.layers = 47;
  EXPECT_EQ("Glm4MoeLiteForCausalLM", row("deepseek2", lite));
  const auto fuses = [](const GgufTraits& traits) {
    return FindGgufArchitecture("phi2", traits)->names->qkv != nullptr;
  };
  EXPECT_FALSE(fuses({}));
  EXPECT_TRUE(fuses({.fuses_qkv = true}));
  const auto has_experts = [](const char* name, bool has) {
    return FindGgufArchitecture(name, {.has_experts = has})->names->is_stacked_by_rows ||
           FindGgufArchitecture(name, {.has_experts = has})->names->router != nullptr;
  };
  for (const char* name : {"gemma4", "granitehybrid"}) {
    EXPECT_TRUE(has_experts(name, true)) << name;
    EXPECT_FALSE(has_experts(name, false)) << name;
  }
}

}  // namespace
}  // namespace arn::convert
