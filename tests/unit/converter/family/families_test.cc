#include "converter/family/families.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::ErrorOf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

nlohmann::json Config(const char* architecture, const nlohmann::json& changes = {}) {
  test::TinyCheckpoint tiny;
  tiny.architecture = architecture;
  tiny.layers = 3;
  nlohmann::json config = test::TinyConfig(tiny);
  if (!changes.is_null()) config.merge_patch(changes);
  return config;
}

DecoderSpec Read(const nlohmann::json& config, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  return ReadDecoderSpec(config, "config.json", warnings == nullptr ? &ignored : warnings);
}

std::string ErrorOfConfig(const nlohmann::json& config) {
  return ErrorOf([&] { Read(config); });
}

std::vector<uint32_t> Windows(const DecoderSpec& spec) {
  std::vector<uint32_t> windows;
  for (const uint32_t kind : spec.layer_kinds) windows.push_back(spec.kinds[kind].window);
  return windows;
}

TEST(Families, LlamaConfig_GivesSpec) {
  const DecoderSpec spec = Read(Config("LlamaForCausalLM"));
  EXPECT_EQ(spec.hidden, 32u);
  EXPECT_EQ(spec.vocab, 64u);
  EXPECT_EQ(spec.max_context, 128u);
  EXPECT_TRUE(spec.tied);
  EXPECT_THAT(spec.layer_kinds, ElementsAre(0, 0, 0));
  const LayerKindSpec& kind = spec.kinds.at(0);
  EXPECT_EQ(kind.n_heads, 4u);
  EXPECT_EQ(kind.n_kv_heads, 2u);
  EXPECT_EQ(kind.head_dim, 8u);
  EXPECT_EQ(kind.ffn_dim, 48u);
  EXPECT_FLOAT_EQ(kind.attention_scale, 0.35355339f);
  EXPECT_FLOAT_EQ(kind.norm_epsilon, 1e-5f);
  EXPECT_FALSE(kind.has_qk_norm || kind.has_qkv_bias || kind.has_attention_out_bias ||
               kind.has_mlp_bias);
}

TEST(Families, OldAndNewKeys_GiveEqualSpecs) {
  const nlohmann::json scaling = {{"factor", 8.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 64}};
  nlohmann::json parameters = scaling, old_scaling = scaling;
  parameters["rope_type"] = "llama3";
  parameters["rope_theta"] = 500000.0;
  old_scaling["type"] = "llama3";
  const nlohmann::json new_keys = Config("LlamaForCausalLM", {{"rope_parameters", parameters}});
  const nlohmann::json old_keys = Config("LlamaForCausalLM", {{"rope_parameters", nullptr},
                                                              {"rope_theta", 500000.0},
                                                              {"rope_scaling", old_scaling},
                                                              {"dtype", nullptr},
                                                              {"torch_dtype", "bfloat16"}});
  ASSERT_FALSE(old_keys.contains("rope_parameters"));
  EXPECT_EQ(Read(new_keys), Read(old_keys));
}

TEST(Families, HeadDimAbsent_IsHiddenOverHeads) {
  const nlohmann::json absent = {{"head_dim", nullptr}};
  EXPECT_EQ(Read(Config("LlamaForCausalLM", absent)).kinds[0].head_dim, 8u);
  EXPECT_EQ(Read(Config("Qwen2ForCausalLM", absent)).kinds[0].head_dim, 8u);
  EXPECT_EQ(Read(Config("Qwen3ForCausalLM", absent)).kinds[0].head_dim, 128u);
  EXPECT_THAT(
      ErrorOfConfig(Config("LlamaForCausalLM", {{"head_dim", nullptr}, {"hidden_size", 33}})),
      HasSubstr("hidden_size 33 is not a multiple of num_attention_heads 4"));
}

TEST(Families, KvHeadsAbsent_IsTheFamilysDefault) {
  const nlohmann::json absent = {{"num_key_value_heads", nullptr}, {"num_attention_heads", 64}};
  EXPECT_EQ(Read(Config("LlamaForCausalLM", absent)).kinds[0].n_kv_heads, 64u);
  EXPECT_EQ(Read(Config("MistralForCausalLM", absent)).kinds[0].n_kv_heads, 8u);
  EXPECT_EQ(Read(Config("Qwen2ForCausalLM", absent)).kinds[0].n_kv_heads, 32u);
}

TEST(Families, Biases_FollowRowAndKeys) {
  const nlohmann::json biased = {{"attention_bias", true}, {"mlp_bias", true}};
  const LayerKindSpec llama = Read(Config("LlamaForCausalLM", biased)).kinds[0];
  EXPECT_TRUE(llama.has_qkv_bias && llama.has_attention_out_bias && llama.has_mlp_bias);
  const LayerKindSpec qwen2 = Read(Config("Qwen2ForCausalLM")).kinds[0];
  EXPECT_TRUE(qwen2.has_qkv_bias);
  EXPECT_FALSE(qwen2.has_attention_out_bias || qwen2.has_mlp_bias || qwen2.has_qk_norm);
  const LayerKindSpec qwen3 = Read(Config("Qwen3ForCausalLM", {{"attention_bias", true}})).kinds[0];
  EXPECT_TRUE(qwen3.has_qkv_bias && qwen3.has_attention_out_bias && qwen3.has_qk_norm);
  EXPECT_FALSE(qwen3.has_mlp_bias);
  EXPECT_THAT(ErrorOfConfig(Config("MistralForCausalLM", {{"attention_bias", true}})),
              HasSubstr("attention_bias is true, which is not supported for MistralForCausalLM"));
}

TEST(Families, MistralWindow_HoldsForEveryLayer) {
  EXPECT_THAT(Windows(Read(Config("MistralForCausalLM", {{"sliding_window", 16}}))),
              ElementsAre(16, 16, 16));
  EXPECT_THAT(Windows(Read(Config("MistralForCausalLM"))), ElementsAre(4096, 4096, 4096));
  nlohmann::json off = Config("MistralForCausalLM");
  off["sliding_window"] = nullptr;
  EXPECT_THAT(Windows(Read(off)), ElementsAre(0, 0, 0));
}

TEST(Families, QwenWindow_CountsOnlyWhenUsed) {
  for (const char* name : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    EXPECT_THAT(
        Windows(Read(Config(name, {{"use_sliding_window", false}, {"sliding_window", 32768}}))),
        ElementsAre(0, 0, 0));
    const DecoderSpec spec = Read(Config(
        name, {{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 2}}));
    EXPECT_THAT(Windows(spec), ElementsAre(0, 0, 16));
    EXPECT_EQ(spec.kinds.size(), 2u);
    EXPECT_THAT(Windows(Read(Config(
                    name, {{"use_sliding_window", true},
                           {"sliding_window", 16},
                           {"layer_types",
                            {"sliding_attention", "full_attention", "sliding_attention"}}}))),
                ElementsAre(16, 0, 16));
  }
}

TEST(Families, LayerTypes_ThatCannotBe_AreRefused) {
  EXPECT_THAT(ErrorOfConfig(Config("Qwen3ForCausalLM", {{"layer_types", {"full_attention"}}})),
              HasSubstr("layer_types: expected a list of 3 entries"));
  const nlohmann::json sliding = {
      {"layer_types", {"full_attention", "sliding_attention", "full_attention"}}};
  EXPECT_THAT(ErrorOfConfig(Config("Qwen3ForCausalLM", sliding)),
              HasSubstr("no sliding window is in use"));
  EXPECT_THAT(ErrorOfConfig(Config("MistralForCausalLM", sliding)), HasSubstr("layer_types[0]"));
  EXPECT_THAT(ErrorOfConfig(Config("LlamaForCausalLM", sliding)), HasSubstr("layer_types[1]"));
  EXPECT_THAT(
      ErrorOfConfig(Config("Qwen2ForCausalLM",
                           {{"layer_types", {"full_attention", "mamba", "full_attention"}}})),
      AllOf(HasSubstr("layer_types[1]"), HasSubstr("\"mamba\"")));
  EXPECT_NO_THROW(
      Read(Config("LlamaForCausalLM",
                  {{"layer_types", {"full_attention", "full_attention", "full_attention"}}})));
}

TEST(Families, UnknownArchitecture_NamesItAndItsFields) {
  EXPECT_THAT(
      ErrorOfConfig(Config("Zamba2ForCausalLM", {{"adapter_rank", 16}, {"num_mem_blocks", 4}})),
      AllOf(HasSubstr("architecture Zamba2ForCausalLM is not supported"),
            HasSubstr("LlamaForCausalLM"), HasSubstr("adapter_rank, num_mem_blocks")));
}

// Specs of families with special features, checked by the fields the runtime reads.
TEST(Families, Gemma2_DefaultsAndNull) {
  const DecoderSpec spec = Read(Config("Gemma2ForCausalLM", {{"num_hidden_layers", 4}}));
  EXPECT_EQ(50.0f, spec.kinds[0].softcap);
  EXPECT_EQ(30.0f, spec.logits_softcap);
  EXPECT_EQ(1.0f, spec.norm_offset);
  EXPECT_FLOAT_EQ(std::sqrt(static_cast<float>(spec.hidden)), spec.embedding_factor);
  EXPECT_FLOAT_EQ(1.0f / 16, spec.kinds[0].attention_scale);
  EXPECT_EQ(Activation::kGeluTanh, spec.kinds[0].activation);
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 0, 1}), spec.layer_kinds);
  EXPECT_EQ(4096u, spec.kinds[0].window);
  EXPECT_EQ(0u, spec.kinds[1].window);
  const DecoderSpec off = Read(Config(
      "Gemma2ForCausalLM", {{"attn_logit_softcapping", 0}, {"final_logit_softcapping", 0.0}}));
  EXPECT_EQ(0.0f, off.kinds[0].softcap);
  EXPECT_EQ(0.0f, off.logits_softcap);
}

TEST(Families, Gpt2_KeysOfItsOwn) {
  const nlohmann::json config = {{"architectures", {"GPT2LMHeadModel"}},
                                 {"vocab_size", 64},
                                 {"n_embd", 32},
                                 {"n_head", 4},
                                 {"n_layer", 2}};
  const DecoderSpec spec = Read(config);
  EXPECT_EQ(32u, spec.hidden);
  EXPECT_EQ(1024u, spec.max_context);
  EXPECT_EQ(128u, spec.kinds[0].ffn_dim);
  EXPECT_FALSE(spec.kinds[0].is_gated);
  EXPECT_EQ(kNoRope, spec.kinds[0].rope);
  EXPECT_TRUE(spec.ropes.empty());
  EXPECT_TRUE(spec.tied);
  EXPECT_TRUE(spec.is_transposed);
  nlohmann::json odd = config;
  odd["scale_attn_weights"] = false;
  EXPECT_THAT(ErrorOfConfig(odd), HasSubstr("scale_attn_weights"));
  odd = config;
  odd["scale_attn_by_inverse_layer_idx"] = true;
  EXPECT_THAT(ErrorOfConfig(odd), HasSubstr("scale_attn_by_inverse_layer_idx"));
}

TEST(Families, LocalLayers_AsListed) {
  nlohmann::json config = {{"architectures", {"GPTNeoForCausalLM"}},
                           {"vocab_size", 64},
                           {"hidden_size", 32},
                           {"num_heads", 4},
                           {"num_layers", 4}};
  const auto windows = [&] {
    const DecoderSpec spec = Read(config);
    std::vector<uint32_t> out;
    for (const uint32_t kind : spec.layer_kinds) out.push_back(spec.kinds[kind].window);
    return out;
  };
  EXPECT_EQ((std::vector<uint32_t>{0, 256, 0, 256}), windows());
  EXPECT_EQ(1.0f, Read(config).kinds[0].attention_scale);
  config["window_size"] = 16;
  config["attention_types"] = nlohmann::json::parse(R"([[["local"], 1], [["global", "local"], 1],
                                                        [["global"], 1]])");
  EXPECT_EQ((std::vector<uint32_t>{16, 0, 16, 0}), windows());
  config["attention_layers"] = {"global", "global", "local", "local"};
  EXPECT_EQ((std::vector<uint32_t>{0, 0, 16, 16}), windows());
  config["attention_layers"] = {"global", "local"};
  EXPECT_THAT(ErrorOfConfig(config), HasSubstr("the 4 layers"));
  config["attention_layers"] = nullptr;
  for (const char* bad : {R"([[["sideways"], 4]])", R"([["local", 4]])", R"(["local"])",
                          R"([[["local"], 5]])", R"([[["local"], -1]])", "7"}) {
    config["attention_types"] = nlohmann::json::parse(bad);
    EXPECT_THAT(ErrorOfConfig(config), HasSubstr("attention_types")) << bad;
  }
}

TEST(Families, SomeLayersRotate_AsListedOrEachFourthNot) {
  const nlohmann::json listed =
      Config("SmolLM3ForCausalLM", {{"num_hidden_layers", 3}, {"no_rope_layers", {0, 1, 0}}});
  const DecoderSpec spec = Read(listed);
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 0}), spec.layer_kinds);
  EXPECT_EQ(kNoRope, spec.kinds[0].rope);
  EXPECT_EQ(0u, spec.kinds[1].rope);
  const DecoderSpec fourth = Read(Config("SmolLM3ForCausalLM", {{"num_hidden_layers", 5}}));
  EXPECT_EQ((std::vector<uint32_t>{0, 0, 0, 1, 0}), fourth.layer_kinds);
  EXPECT_EQ(kNoRope, fourth.kinds[1].rope);
  EXPECT_THAT(ErrorOfConfig(Config("SmolLM3ForCausalLM", {{"no_rope_layers", {1}}})),
              HasSubstr("no_rope_layers"));
}

TEST(Families, Multipliers_GoWhereTheyBelong) {
  const DecoderSpec spec = Read(Config("GraniteForCausalLM", {{"attention_multiplier", 0.3},
                                                              {"embedding_multiplier", 5.0},
                                                              {"residual_multiplier", 0.6},
                                                              {"logits_scaling", 4.0}}));
  EXPECT_EQ(0.3f, spec.kinds[0].attention_scale);
  EXPECT_EQ(5.0f, spec.embedding_factor);
  EXPECT_EQ(0.6f, spec.residual_factor);
  EXPECT_EQ(0.25f, spec.logits_factor);
  EXPECT_THAT(ErrorOfConfig(Config("GraniteForCausalLM", {{"logits_scaling", -1.0}})),
              HasSubstr("logits_scaling"));
}

TEST(Families, Experts_InTheLayersThatHaveThem) {
  const DecoderSpec mixtral = Read(Config("MixtralForCausalLM", {{"num_local_experts", 4}}));
  EXPECT_EQ(4u, mixtral.kinds[0].n_experts);
  EXPECT_EQ(2u, mixtral.kinds[0].n_experts_used);
  EXPECT_TRUE(mixtral.kinds[0].norm_topk_prob);
  nlohmann::json config = Config("Qwen3MoeForCausalLM", {{"num_hidden_layers", 4},
                                                         {"num_experts", 16},
                                                         {"num_experts_per_tok", 3},
                                                         {"moe_intermediate_size", 20},
                                                         {"decoder_sparse_step", 2}});
  const DecoderSpec spec = Read(config);
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 0, 1}), spec.layer_kinds);
  EXPECT_EQ(0u, spec.kinds[0].n_experts);
  EXPECT_EQ(16u, spec.kinds[1].n_experts);
  EXPECT_EQ(20u, spec.kinds[1].ffn_dim);
  EXPECT_FALSE(spec.kinds[1].norm_topk_prob);
  config["mlp_only_layers"] = {3};
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 0, 0}), Read(config).layer_kinds);
  config["mlp_only_layers"] = {4};
  EXPECT_THAT(ErrorOfConfig(config), HasSubstr("mlp_only_layers"));
  config["mlp_only_layers"] = nullptr;
  config["num_experts_per_tok"] = 17;
  EXPECT_THAT(ErrorOfConfig(config), HasSubstr("num_experts_per_tok 17 of 16"));
}

// The keys of baidu/ERNIE-4.5-0.3B-PT, whose architecture has another name than in transformers.
// The keys of CohereLabs/North-Mini-Code-1.0 that say what it computes, with fewer layers.
TEST(Families, ExpertsBesideAttention_AsPublished) {
  nlohmann::json config = {{"architectures", {"Cohere2MoeForCausalLM"}},
                           {"vocab_size", 262144},
                           {"hidden_size", 2048},
                           {"intermediate_size", 768},
                           {"prefix_dense_intermediate_size", 3072},
                           {"num_hidden_layers", 6},
                           {"num_attention_heads", 32},
                           {"num_key_value_heads", 4},
                           {"head_dim", 128},
                           {"rms_norm_eps", 1e-6},
                           {"logit_scale", 1.0},
                           {"sliding_window", 4096},
                           {"sliding_window_pattern", 4},
                           {"first_k_dense_replace", 1},
                           {"prefix_dense_sliding_window_pattern", 1},
                           {"num_experts", 128},
                           {"num_experts_per_tok", 8},
                           {"num_shared_experts", 0},
                           {"expert_selection_fn", "sigmoid"},
                           {"norm_topk_prob", false},
                           {"use_qk_norm", false},
                           {"use_parallel_block", true},
                           {"use_gated_activation", true}};
  const DecoderSpec spec = Read(config);
  const LayerKindSpec& dense = spec.kinds[spec.layer_kinds[0]];
  EXPECT_EQ(3072u, dense.ffn_dim);
  EXPECT_EQ(0u, dense.n_experts);
  EXPECT_EQ(0u, dense.window);
  EXPECT_NE(kNoRope, dense.rope);  // without a window, but dense
  const LayerKindSpec& sparse = spec.kinds[spec.layer_kinds[1]];
  EXPECT_EQ(768u, sparse.ffn_dim);
  EXPECT_EQ(4096u, sparse.window);
  EXPECT_EQ(NormKind::kRms, sparse.norm);
  EXPECT_EQ(RouteScore::kSigmoid, sparse.route_score);
  EXPECT_FALSE(sparse.norm_topk_prob);
  EXPECT_EQ(1.0f, sparse.routed_factor);
  // The pattern begins behind the dense layers: every fourth of the others has no window.
  const LayerKindSpec& full = spec.kinds[spec.layer_kinds[4]];
  EXPECT_EQ(0u, full.window);
  EXPECT_EQ(kNoRope, full.rope);
  const nlohmann::json changes = {{"expert_selection_fn", "tanh"},
                                  {"shared_expert_combination_strategy", "max"},
                                  {"use_qk_norm", true},
                                  {"rope_scaling", {{"rope_type", "linear"}}},
                                  {"first_k_dense_replace", 7}};
  for (const auto& [key, value] : changes.items()) {
    nlohmann::json odd = config;
    odd[key] = value;
    EXPECT_THAT(ErrorOfConfig(odd), HasSubstr(key));
  }
}

// The keys of poolside/Laguna-S-2.1, with fewer layers.
TEST(Families, HeadsByLayer_AsPublished) {
  nlohmann::json config = {
      {"architectures", {"LagunaForCausalLM"}},
      {"vocab_size", 100352},
      {"hidden_size", 3072},
      {"intermediate_size", 12288},
      {"num_hidden_layers", 2},
      {"num_attention_heads", 48},
      {"num_attention_heads_per_layer", {48, 64}},
      {"num_key_value_heads", 8},
      {"head_dim", 128},
      {"num_experts", 256},
      {"num_experts_per_tok", 10},
      {"moe_intermediate_size", 1024},
      {"shared_expert_intermediate_size", 1024},
      {"decoder_sparse_step", 1},
      {"norm_topk_prob", true},
      {"moe_routed_scaling_factor", 2.5},
      {"moe_router_logit_softcapping", 0.0},
      {"moe_apply_router_weight_on_input", false},
      {"mlp_only_layers", {0}},
      {"gating", "per-head"},
      {"gating_types", {"per-head", "per-head"}},
      {"sliding_window", 512},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"mlp_layer_types", {"dense", "sparse"}},
      {"rope_parameters",
       {{"full_attention",
         {{"rope_type", "yarn"},
          {"rope_theta", 500000.0},
          {"factor", 128.0},
          {"original_max_position_embeddings", 8192},
          {"beta_slow", 1.0},
          {"beta_fast", 32.0},
          {"attention_factor", 1.4852030263919618},
          {"partial_rotary_factor", 0.5}}},
        {"sliding_attention",
         {{"rope_type", "default"}, {"rope_theta", 10000.0}, {"partial_rotary_factor", 1.0}}}}}};
  const DecoderSpec spec = Read(config);
  const LayerKindSpec& first = spec.kinds[spec.layer_kinds[0]];
  const LayerKindSpec& second = spec.kinds[spec.layer_kinds[1]];
  EXPECT_EQ(48u, first.n_heads);
  EXPECT_EQ(64u, second.n_heads);
  EXPECT_TRUE(first.has_head_gates && second.has_head_gates);
  EXPECT_EQ(64u, spec.ropes[first.rope].rotary_dim);
  EXPECT_EQ(128u, spec.ropes[second.rope].rotary_dim);
  EXPECT_EQ(512u, second.window);
  EXPECT_EQ(2.5f, second.routed_factor);
  EXPECT_TRUE(second.norm_topk_prob && second.has_router_correction);
  const nlohmann::json changes = {{"num_attention_heads_per_layer", {48, 60}},
                                  {"num_key_value_heads", 9},
                                  {"moe_router_logit_softcapping", 30.0},
                                  {"moe_apply_router_weight_on_input", true},
                                  {"swa_attention_sink_enabled", true}};
  for (const auto& [key, value] : changes.items()) {
    nlohmann::json odd = config;
    odd[key] = value;
    EXPECT_THAT(ErrorOfConfig(odd), HasSubstr(key));
  }
}

TEST(Families, OlderNameOfAnArchitecture_IsKnown) {
  const nlohmann::json changes = {{"use_bias", false}, {"head_dim", 8}};
  EXPECT_EQ(Read(Config("Ernie4_5ForCausalLM", changes)),
            Read(Config("Ernie4_5_ForCausalLM", changes)));
}

TEST(Families, NoArchitectures_ModelTypeTells) {
  const nlohmann::json config =
      Config("LlamaForCausalLM", {{"architectures", nullptr}, {"model_type", "qwen2"}});
  EXPECT_EQ(Read(config).architecture, "Qwen2ForCausalLM");
  EXPECT_THAT(ErrorOfConfig(Config("LlamaForCausalLM",
                                   {{"architectures", nullptr}, {"model_type", nullptr}})),
              HasSubstr("(none given)"));
}

TEST(Families, ValuesThatChangeTheMaths_AreRefused) {
  const std::vector<std::pair<nlohmann::json, const char*>> cases = {
      {{{"hidden_act", "softplus"}}, "hidden_act: expected silu, gelu, gelu_new"},
      {{{"use_sliding_window", true}}, "use_sliding_window is true"},
      {{{"quantization_config", {{"bits", 4}}}}, "quantization_config"},
      {{{"logits_scaling", 2.0}}, "logits_scaling is 2.0"},
      {{{"rope_interleaved", true}}, "rope_interleaved"},
      {{{"final_logit_softcapping", 30.0}}, "final_logit_softcapping"},
      {{{"num_local_experts", 8}}, "num_local_experts"},
      {{{"is_encoder_decoder", true}}, "is_encoder_decoder"},
      {{{"num_key_value_heads", 3}},
       "num_attention_heads 4 is not a multiple of num_key_value_heads 3"},
      {{{"hidden_size", 0}}, "hidden_size: expected a whole number from 1"},
      {{{"hidden_size", "32"}}, "hidden_size: expected a whole number, found \"32\""},
      {{{"num_hidden_layers", nullptr}}, "num_hidden_layers"},
      {{{"rms_norm_eps", -1.0}}, "rms_norm_eps"},
      {{{"tie_word_embeddings", 1}}, "tie_word_embeddings: expected true or false"},
  };
  for (const auto& [changes, text] : cases) {
    EXPECT_THAT(ErrorOfConfig(Config("LlamaForCausalLM", changes)), HasSubstr(text));
  }
}

TEST(Families, NeutralAndHarmlessKeys_PassSilently) {
  std::vector<std::string> warnings;
  nlohmann::json config = Config("LlamaForCausalLM", {{"logits_scaling", 1.0},
                                                      {"rope_interleaved", false},
                                                      {"use_mrope", false},
                                                      {"is_llama_config", true},
                                                      {"pretraining_tp", 2},
                                                      {"some_new_switch", false},
                                                      {"some_new_list", nlohmann::json::array()},
                                                      {"max_window_layers", 28}});
  config["sliding_window"] = nullptr;
  Read(config, &warnings);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Families, UnknownKeys_AreRefusedByName_UnlessIgnored) {
  const nlohmann::json config =
      Config("LlamaForCausalLM", {{"brand_new_key", 3}, {"another", "x"}, {"use_mrope", true}});
  nlohmann::json unknown = config;
  unknown.erase("use_mrope");
  EXPECT_THAT(
      ErrorOfConfig(unknown),
      HasSubstr(
          "unknown keys: another, brand_new_key (if they do not change what the model computes:"
          " --ignore-config-keys another,brand_new_key)"));
  EXPECT_THAT(ErrorOfConfig(config), HasSubstr("use_mrope is true"));
  std::vector<std::string> warnings;
  ReadDecoderSpec(config, "config.json", &warnings, {"brand_new_key", "another", "use_mrope"});
  EXPECT_THAT(warnings,
              ElementsAre("config.json: keys that have no effect on LlamaForCausalLM: another "
                          "\"x\", brand_new_key 3, use_mrope true"));
}

// Keys that transformers' models never read.
TEST(Families, KeysWithoutEffect_AreNamedAndIgnored) {
  const std::vector<std::tuple<const char*, const char*, nlohmann::json>> cases = {
      {"LlamaForCausalLM", "sliding_window", 16},
      {"Gemma3ForCausalLM", "attn_logit_softcapping", 4.0},
      {"GptOssForCausalLM", "swiglu_limit", 0.5},
      {"Starcoder2ForCausalLM", "activation_function", "gelu"}};
  for (const auto& [architecture, key, value] : cases) {
    SCOPED_TRACE(architecture);
    std::vector<std::string> warnings;
    // Without RoPE too: Gemma 3 reads it per layer type only.
    const nlohmann::json without = {{"rms_norm_eps", nullptr}, {"rope_parameters", nullptr}};
    nlohmann::json with = without;
    with[key] = value;
    EXPECT_EQ(Read(Config(architecture, without)), Read(Config(architecture, with), &warnings));
    EXPECT_THAT(warnings, ElementsAre(HasSubstr(std::string(architecture) + ": " + key)));
  }
}

TEST(Families, Activations_ByTheirNames) {
  const std::vector<std::pair<const char*, Activation>> cases = {
      {"silu", Activation::kSilu},
      {"gelu", Activation::kGelu},
      {"gelu_accurate", Activation::kGeluTanh},
      {"relu", Activation::kRelu},
      {"relu2", Activation::kReluSquared},
      {"quick_gelu", Activation::kQuickGelu},
      {"tanh", Activation::kTanh},
      {"sigmoid", Activation::kSigmoid},
      {"mish", Activation::kMish}};
  for (const auto& [name, activation] : cases) {
    EXPECT_EQ(activation,
              Read(Config("LlamaForCausalLM", {{"hidden_act", name}})).kinds[0].activation);
  }
}

// The checkpoints of the optional folder of references: both key styles give the same spec.
TEST(Families, ReferenceConfigs_BothStylesEqual) {
  const char* shared = ARN_SHARED_DIR;
  const std::filesystem::path tiny = std::filesystem::path(shared) / "reference" / "tiny";
  if (*shared == '\0' || !std::filesystem::exists(tiny)) {
    GTEST_SKIP() << "no folder of references (ARENITE_SHARED_DIR)";
  }
  for (const char* name : {"llama_tied", "llama_untied", "llama_bias_hd", "llama3_rope",
                           "llama_yarn", "llama_linear", "mistral", "qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    std::vector<std::string> warnings;
    EXPECT_EQ(Read(LoadJson(tiny / name / "config.json"), &warnings),
              Read(LoadJson(tiny / name / "config.old.json"), &warnings));
    EXPECT_THAT(warnings, IsEmpty());
  }
}

}  // namespace
}  // namespace arn::convert
