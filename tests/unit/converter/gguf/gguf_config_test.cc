// Metadata of GGUF files as config.json and tokenizer.json: what each key becomes, and which
// values are refused.
#include "converter/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "tests/unit/converter/gguf/gguf_config_fixture.h"

namespace arn::convert {
namespace {

using ::testing::HasSubstr;

TEST(GgufConfig, KeysBecomeThoseOfTheFamily) {
  const json llama = ConfigOf("llama", {});
  EXPECT_EQ(64, llama["hidden_size"]);
  EXPECT_EQ(4, llama["num_key_value_heads"]);
  EXPECT_EQ(16, llama["head_dim"]);
  EXPECT_EQ(0.5, llama["rms_norm_eps"]);
  EXPECT_EQ(10000.0, llama["rope_theta"]);
  EXPECT_EQ(true, llama["tie_word_embeddings"]);
  EXPECT_EQ(false, llama["attention_bias"]);
  EXPECT_FALSE(llama.contains("rope_scaling"));
  for (const char* bias : {"attn_q", "attn_qkv", "attn_output"}) {
    GgufFacts facts;
    facts.tensors = {"output.weight", std::string("blk.0.") + bias + ".bias"};
    const json with = ConfigOf("llama", {}, facts);
    EXPECT_EQ(true, with["attention_bias"]) << bias;
    EXPECT_EQ(false, with["tie_word_embeddings"]);
  }
  const json neox = ConfigOf("gptneox", {{"rope.dimension_count", 4}});
  EXPECT_EQ(true, neox["use_parallel_residual"]);
  EXPECT_EQ(4.5 / 16, neox["partial_rotary_factor"]);
  EXPECT_EQ(false,
            ConfigOf("gptneox", {{"use_parallel_residual", false}})["use_parallel_residual"]);
  EXPECT_EQ(1.0, ConfigOf("gptneox", {})["partial_rotary_factor"]);
  const json granite = ConfigOf(
      "granite", {{"embedding_scale", 12.0}, {"residual_scale", 0.5}, {"logit_scale", 8.0}});
  EXPECT_EQ(12.0, granite["embedding_multiplier"]);
  EXPECT_EQ(0.5, granite["residual_multiplier"]);
  EXPECT_EQ(8.0, granite["logits_scaling"]);
  EXPECT_EQ(0.25, granite["attention_multiplier"]);
  EXPECT_EQ(0.125, ConfigOf("granite", {{"attention.scale", 0.125}})["attention_multiplier"]);
  EXPECT_EQ(16, ConfigOf("gemma2", {{"attention.key_length", 16},
                                    {"attention.sliding_window", 8}})["query_pre_attn_scalar"]);
  // The largest size of the family scales by hidden / heads.
  EXPECT_EQ(16, ConfigOf("gemma2", {{"block_count", 46},
                                    {"attention.key_length", 32},
                                    {"attention.sliding_window", 8}})["query_pre_attn_scalar"]);
}

// Other architectures have keys of their own: gguf_decoder_families_test.cc, gguf_hybrids_test.cc.
TEST(GgufConfig, FewKeys_AreEnough) {
  constexpr const char* kNames[] = {"llama",  "gemma",      "qwen2",   "qwen3",   "qwen3moe",
                                    "gemma2", "gemma3",     "phi3",    "smollm3", "granite",
                                    "olmo2",  "starcoder2", "gptneox", "gpt2",    "gpt-oss",
                                    "llama4", "lfm2",       "mamba",   "t5"};
  for (const GgufArchitecture& row : GgufArchitectures()) {
    const std::string name = row.name;
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) continue;
    if (row.stores_window) continue;
    SCOPED_TRACE(name);
    json own = json::object();
    if (name == "lfm2") own = {{"shortconv.l_cache", 3}};
    if (name == "mamba") {
      own = {{"ssm.conv_kernel", 4},
             {"ssm.inner_size", 128},
             {"ssm.state_size", 8},
             {"ssm.time_step_rank", 4},
             {"attention.head_count", json()},
             {"feed_forward_length", json()}};
    }
    if (name == "t5") own = {{"attention.relative_buckets_count", 32}};
    if (row.names->router != nullptr) own = {{"expert_count", 4}, {"expert_used_count", 2}};
    GgufFacts facts;
    if (row.has_window) facts.window = 64;
    const json config = ConfigOf(name, own, facts);
    EXPECT_EQ(row.architecture, config["architectures"][0]);
    EXPECT_EQ(100, config["vocab_size"]);
    EXPECT_EQ(name == "t5" ? 2 : 0, config.value("num_decoder_layers", 0));
  }
  EXPECT_EQ(3, ConfigOf("t5", {{"attention.relative_buckets_count", 32},
                               {"decoder_block_count", 3}})["num_decoder_layers"]);
  GgufFacts facts;
  facts.tensors = {"enc.blk.0.ffn_gate.weight"};
  EXPECT_EQ("gated-gelu",
            ConfigOf("t5", {{"attention.relative_buckets_count", 32}}, facts)["feed_forward_proj"]);
  EXPECT_THAT(ErrorOf("gptneox", {{"attention.key_length", 8}}),
              HasSubstr("gptneox.attention.key_length: expected embedding_length / "
                        "attention.head_count, found 8"));
}

TEST(GgufConfig, ANumberForEveryLayer_IsOneNumber) {
  EXPECT_EQ(2, ConfigOf("llama", {{"attention.head_count_kv", {2, 2}}})["num_key_value_heads"]);
  EXPECT_EQ(4, ConfigOf("llama", {{"attention.head_count_kv", 0}})["num_key_value_heads"]);
  const char* const expected =
      "llama.attention.head_count_kv: expected one number for all layers, found ";
  for (const json& bad : {json{2, 4}, json::array(), json{2.5, 2.5}, json{0, 0}, json{-1, -1},
                          json{"2", "2"}, json{4294967296, 4294967296}}) {
    EXPECT_THAT(ErrorOf("llama", {{"attention.head_count_kv", bad}}),
                HasSubstr(expected + bad.dump()));
  }
}

TEST(GgufConfig, LayersWithoutAttention) {
  const json one = {{"attention.head_count_kv", {0, 2}}, {"shortconv.l_cache", 3}};
  const json config = ConfigOf("lfm2", one);
  EXPECT_EQ(json({"conv", "full_attention"}), config["layer_types"]);
  EXPECT_EQ(2, config["num_key_value_heads"]);
  EXPECT_EQ(false, config["conv_bias"]);
  const json none =
      ConfigOf("lfm2", {{"attention.head_count_kv", {0, 0}}, {"shortconv.l_cache", 3}});
  EXPECT_EQ(json({"conv", "conv"}), none["layer_types"]);
  EXPECT_EQ(4, none["num_key_value_heads"]);
  for (const json& bad : {json{0, -1}, json{0, 2.5}, json{2, 4}, json{0, 4294967296}}) {
    EXPECT_THAT(ErrorOf("lfm2", {{"attention.head_count_kv", bad}, {"shortconv.l_cache", 3}}),
                HasSubstr("lfm2.attention.head_count_kv: expected 0 or the same number for each "
                          "layer, found " +
                          bad.dump()));
  }
  EXPECT_THAT(ErrorOf("lfm2", {{"attention.head_count_kv", {0, 2, 2}}, {"shortconv.l_cache", 3}}),
              HasSubstr("expected a number for each layer"));
}

TEST(GgufConfig, Windows) {
  const auto types = [](const json& changes) { return ConfigOf("gemma3", changes)["layer_types"]; };
  const json full = "full_attention", local = "sliding_attention";
  const char* const window = "attention.sliding_window";
  const char* const pattern = "attention.sliding_window_pattern";
  EXPECT_EQ(json({local, local, local, local, local, full}),
            types({{"block_count", 6}, {window, 512}}));
  EXPECT_EQ(json({local, full}), types({{window, 512}, {pattern, 2}}));
  EXPECT_EQ(json({full, local}), types({{window, 512}, {pattern, {false, true}}}));
  EXPECT_EQ(json({full, full}), types({{window, 0}, {pattern, {false, true}}}));
  EXPECT_EQ(json({full, full}), types({}));
  for (const json& bad : {json{true}, json{true, 1}}) {
    EXPECT_THAT(ErrorOf("gemma3", {{window, 512}, {pattern, bad}}),
                HasSubstr("gemma3.attention.sliding_window_pattern: expected true or false for "
                          "each layer"));
  }
  EXPECT_THAT(ErrorOf("gemma3", {{window, 512}, {pattern, 0}}), HasSubstr("whole number from 1"));
  for (const json& bad : {json(-1), json(4294967296)}) {
    EXPECT_THAT(ErrorOf("gemma3", {{window, bad}}),
                HasSubstr("gemma3.attention.sliding_window: expected a number of tokens"));
  }
  // A window of the user, for files that say nothing.
  GgufFacts given;
  given.window = 32;
  EXPECT_EQ(32, ConfigOf("llama", {}, given)["sliding_window"]);
  given.window = 0;
  EXPECT_EQ(json(), ConfigOf("phi3", {}, given)["sliding_window"]);
  EXPECT_EQ(16, ConfigOf("phi3", {{window, 16}})["sliding_window"]);
}

TEST(GgufConfig, RopeScaling) {
  const auto scaling = [](const json& changes, const GgufFacts& facts = {}) {
    const json config = ConfigOf(facts.long_factors.empty() ? "llama" : "phi3", changes, facts);
    return config.contains("rope_scaling") ? config["rope_scaling"] : json();
  };
  EXPECT_EQ(json(), scaling({{"rope.scale_linear", 1.0}}));
  EXPECT_EQ(json({{"rope_type", "linear"}, {"factor", 4.0}}),
            scaling({{"rope.scale_linear", 4.0}}));
  EXPECT_EQ(json(), scaling({{"rope.scaling.type", "linear"}}));
  EXPECT_EQ(json(), scaling({{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 1.0}}));
  for (const double factor : {0.0, 1.0}) {
    EXPECT_EQ(json(), scaling({{"rope.scaling.type", "none"}, {"rope.scaling.factor", factor}}));
  }
  EXPECT_THAT(ErrorOf("llama", {{"rope.scaling.factor", 2.0}}),
              HasSubstr("llama.rope.scaling.factor: expected no value without a type, found 2"));
  EXPECT_THAT(ErrorOf("llama", {{"rope.scaling.attn_factor", 2.0}}),
              HasSubstr("llama.rope.scaling.attn_factor: expected 1"));
  EXPECT_THAT(ErrorOf("llama", {{"rope.scaling.type", "llama3"}}),
              HasSubstr("llama.rope.scaling.type: expected none, linear, yarn or longrope"));
  const json yarn = {{"rope.scaling.type", "yarn"},
                     {"rope.scaling.factor", 2.0},
                     {"rope.scaling.original_context_length", 64},
                     {"rope.scaling.yarn_beta_fast", 16.0},
                     {"rope.scaling.yarn_truncate", false},
                     {"rope.scaling.yarn_ext_factor", 1.0}};
  EXPECT_EQ(json({{"rope_type", "yarn"},
                  {"factor", 2.0},
                  {"original_max_position_embeddings", 64.0},
                  {"beta_fast", 16.0},
                  {"truncate", false}}),
            scaling(yarn));
  EXPECT_EQ(json({{"rope_type", "yarn"}}), scaling({{"rope.scaling.type", "yarn"}}));
  EXPECT_THAT(
      ErrorOf("llama", {{"rope.scaling.type", "yarn"}, {"rope.scaling.yarn_ext_factor", 2}}),
      HasSubstr("llama.rope.scaling.yarn_ext_factor: expected 1, found 2"));
  GgufFacts factors;
  factors.short_factors = {1.0f};
  factors.long_factors = {2.0f};
  json lists = {{"rope_type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {2.0}}};
  EXPECT_EQ(lists, scaling({}, factors));
  lists["attention_factor"] = 1.5;
  const json attention = {{"rope.scaling.attn_factor", 1.5},
                          {"rope.scaling.original_context_length", 64}};
  EXPECT_EQ(lists, scaling(attention, factors));
  EXPECT_EQ(64.0, ConfigOf("phi3", attention, factors)["original_max_position_embeddings"]);
}

TEST(GgufConfig, Experts) {
  const json experts = {{"expert_count", 8}, {"expert_used_count", 2}};
  EXPECT_EQ(8, ConfigOf("llama", experts)["num_local_experts"]);
  const auto with = [&](const json& more) {
    json all = experts;
    all.update(more);
    return all;
  };
  const json qwen = ConfigOf("qwen3moe", with({{"expert_feed_forward_length", 48},
                                               {"expert_weights_norm", false},
                                               {"expert_weights_scale", 0}}));
  EXPECT_EQ(48, qwen["moe_intermediate_size"]);
  EXPECT_EQ(false, qwen["norm_topk_prob"]);
  EXPECT_THAT(ErrorOf("llama", with({{"expert_weights_norm", false}})),
              HasSubstr("llama.expert_weights_norm: expected true"));
  EXPECT_THAT(ErrorOf("llama", with({{"expert_weights_scale", 2.0}})),
              HasSubstr("llama.expert_weights_scale: expected 1"));
  // A softmax over the chosen ones is one over all, normalised.
  EXPECT_EQ(8, ConfigOf("llama", with({{"expert_gating_func", 3}}))["num_local_experts"]);
  EXPECT_EQ(8, ConfigOf("llama", with({{"expert_gating_func", 1}}))["num_local_experts"]);
  EXPECT_THAT(ErrorOf("llama", with({{"expert_gating_func", 2}})),
              HasSubstr("llama.expert_gating_func: expected 1 (softmax)"));
  EXPECT_THAT(
      ErrorOf("qwen3moe", with({{"expert_gating_func", 3}, {"expert_weights_norm", false}})),
      HasSubstr("qwen3moe.expert_gating_func: expected 1 (softmax)"));
  EXPECT_THAT(ErrorOf("llama4", with({{"expert_gating_func", 1}})),
              HasSubstr("llama4.expert_gating_func: expected 2 (sigmoid)"));
  EXPECT_THAT(ErrorOf("llama4", with({{"expert_shared_count", 2}})),
              HasSubstr("llama4.expert_shared_count: expected 1"));
  EXPECT_EQ(true, ConfigOf("llama4", experts)["use_qk_norm"]);
  EXPECT_EQ(false, ConfigOf("llama4", with({{"expert_count", 128},
                                            {"interleave_moe_layer_step", 2}}))["use_qk_norm"]);
  EXPECT_THAT(ErrorOf("qwen3", experts), HasSubstr("qwen3.expert_count: expected none"));
  EXPECT_THAT(ErrorOf("qwen3moe", {}), HasSubstr("qwen3moe.expert_count: expected a number of"));
}

TEST(GgufConfig, WhatDoesNotFit_IsNamed) {
  EXPECT_THAT(ErrorOf("llama", {{"embedding_length", json()}}),
              HasSubstr("m.gguf: llama.embedding_length: expected a whole number above 0"));
  EXPECT_THAT(ErrorOf("llama", {{"attention.layer_norm_rms_epsilon", json()}}),
              HasSubstr("llama.attention.layer_norm_rms_epsilon: expected a number"));
  EXPECT_THAT(ErrorOf("llama", {{"attention.causal", false}}),
              HasSubstr("llama.attention.causal: expected true"));
  EXPECT_THAT(ErrorOf("llama", {{"attention.key_length", 8}, {"attention.value_length", 16}}),
              HasSubstr("llama.attention.value_length: expected attention.key_length, which is 8"));
  EXPECT_THAT(ErrorOf("gptneox", {{"attention.head_count_kv", 2}}),
              HasSubstr("gptneox.attention.head_count_kv: expected attention.head_count"));
  EXPECT_THAT(ErrorOf("llama", {{"rope.dimension_count", 8}}),
              HasSubstr("llama.rope.dimension_count: expected 16"));
  EXPECT_THAT(ErrorOf("llama", {{"attention.odd", 1}}), HasSubstr("llama.attention.odd is 1"));
  EXPECT_THAT(ErrorOf("llama", {{"attention.odd", {1}}}), HasSubstr("llama.attention.odd is [1]"));
  // Keys that say nothing are no reason to refuse.
  for (const json& nothing : {json(0), json(false), json(""), json::array()}) {
    EXPECT_EQ(64, ConfigOf("llama", {{"attention.odd", nothing}})["hidden_size"]) << nothing;
  }
  GgufFacts given;
  given.window = 32;
  EXPECT_THAT(ErrorOf("llama", {{"attention.sliding_window", 16}}, given),
              HasSubstr("--window 32: the file has its own: llama.attention.sliding_window is 16"));
  EXPECT_THAT(ErrorOf("gemma3", {}, given), HasSubstr("--window 32: files of gemma3 have no"));
}

TEST(GgufConfig, SizesThatFilesLeaveOpen) {
  const auto unsaid = [](const std::string& arch, const json& changes, uint64_t vocab,
                         bool has_factors = false) {
    GgufFacts facts;
    facts.vocab = vocab;
    facts.has_rope_factors = has_factors;
    const json metadata = MetadataOf(arch, changes);
    ConfigReader reader(metadata, "m.gguf");
    return UnsaidOf(ReadGgufArchitecture(facts, &reader), facts, &reader);
  };
  const json of_8b = {{"block_count", 32}, {"embedding_length", 4096}};
  EXPECT_EQ("", unsaid("llama", of_8b, 128256));
  EXPECT_THAT(unsaid("llama", of_8b, 32000), HasSubstr("converted without a window"));
  EXPECT_EQ("", unsaid("llama", of_8b, 32000, /*has_factors=*/true));
  EXPECT_EQ("", unsaid("llama", {{"block_count", 16}, {"embedding_length", 2048}}, 7));
  EXPECT_THAT(unsaid("llama", {{"block_count", 16}, {"embedding_length", 2049}}, 7),
              HasSubstr("m.gguf: llama files do not store all settings"));
  EXPECT_EQ("", unsaid("qwen3", {}, 7));
  EXPECT_EQ("", unsaid("starcoder2", {{"attention.sliding_window", 4096}}, 7));
  EXPECT_THAT(unsaid("starcoder2", {}, 7), HasSubstr("without a window"));
}

TEST(GgufVocabulary, TextsAreUtf8) {
  const json base = {{"model", "llama"}, {"scores", {-1, -2}}, {"token_type", {1, 1}}};
  for (const char* good : {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    json all = base;
    all["tokens"] = {"a", good};
    EXPECT_EQ(1, TokenizerOf(all)["model"]["vocab"][good]) << good;
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2",
                          "\xC2"
                          "a",
                          "\xE0\x9F\xBF", "\xE1\x80",
                          "\xE1\x80"
                          "a",
                          "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF1\x80\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_THAT(TokenizerError(base, {{"tokens", {"a", bad}}}),
                HasSubstr("t.gguf: tokenizer.ggml.tokens: token 1 is not valid UTF-8"));
  }
}

TEST(GgufVocabulary, ListsAreChecked) {
  const char* const tokens = "tokenizer.ggml.tokens: expected a list of texts";
  EXPECT_THAT(TokenizerError(kPieces, {{"tokens", json()}}), HasSubstr(tokens));
  EXPECT_THAT(TokenizerError(kPieces, {{"tokens", 1}}), HasSubstr(tokens));
  EXPECT_THAT(TokenizerError(kPieces, {{"tokens", json::array()}}), HasSubstr(tokens));
  EXPECT_THAT(TokenizerError(kPieces, {{"tokens", {1, 2, 3, 4, 5, 6, 7, 8, 9}}}),
              HasSubstr(tokens));
  EXPECT_THAT(TokenizerError(kPieces, {{"scores", 1}}), HasSubstr("a list of 9 values"));
  EXPECT_THAT(TokenizerError(kPieces, {{"scores", {1}}}), HasSubstr("a list of 9 values"));
  EXPECT_THAT(TokenizerError(kPieces, {{"scores", json()}}), HasSubstr("a score for each token"));
  EXPECT_THAT(TokenizerError(kPieces, {{"scores", {0, 0, 0, 0, 0, 0, 0, 0, "1"}}}),
              HasSubstr("tokenizer.ggml.scores: expected a list of numbers"));
  EXPECT_THAT(TokenizerError(kPieces, {{"scores", {0, 0, 0, 0, 0, 0, 0, 0, INFINITY}}}),
              HasSubstr("tokenizer.ggml.scores: expected a list of numbers"));
  EXPECT_THAT(TokenizerError(kPieces, {{"token_type", {1, 1, 1, 1, 1, 1, 1, 1, 0.5}}}),
              HasSubstr("tokenizer.ggml.token_type: expected a list of numbers"));
  for (const json& bad : {json(9), json(-2), json(4294967296)}) {
    EXPECT_THAT(TokenizerError(kPieces, {{"bos_token_id", bad}}),
                HasSubstr("tokenizer.ggml.bos_token_id: expected the number of one of 9 tokens"));
  }
  EXPECT_THAT(TokenizerError(kPieces, {{"remove_extra_whitespaces", true}}),
              HasSubstr("tokenizer.ggml.remove_extra_whitespaces: expected false"));
  const json bytes = {{"model", "gpt2"}, {"pre", "gpt-2"}, {"tokens", {"a", "b"}}};
  for (const json& bad : {json(), json("a b"), json{1}, json{"ab"}, json{" "}}) {
    EXPECT_THAT(TokenizerError(bytes, {{"merges", bad}}), HasSubstr("tokenizer.ggml.merges"));
  }
  EXPECT_THAT(TokenizerError(bytes, {{"pre", "odd"}}), HasSubstr("tokenizer.ggml.pre odd is not"));
  EXPECT_TRUE(TokenizerOf({{"model", "no_vocab"}}).is_null());
}

TEST(GgufVocabulary, Pieces) {
  std::vector<std::string> warnings;
  const json tokenizer = TokenizerOf(kPieces, &warnings);
  EXPECT_THAT(warnings, ::testing::IsEmpty());
  EXPECT_EQ("<unk>", tokenizer["model"]["unk_token"]);
  EXPECT_EQ(false, tokenizer["model"]["byte_fallback"]);
  EXPECT_EQ(json::parse(R"([["a","b"]])"), tokenizer["model"]["merges"]);
  // An unused token is in no vocabulary; added ones stay in theirs beside it.
  EXPECT_EQ(6u, tokenizer["model"]["vocab"].size());
  EXPECT_EQ(3u, tokenizer["added_tokens"].size());
  // -1 and all ones mean none, as an absent key does.
  for (const json& none : {json(-1), json(4294967295)}) {
    json without = kPieces;
    without.update({{"bos_token_id", none}, {"eos_token_id", none}, {"add_eos_token", true}});
    EXPECT_TRUE(TokenizerOf(without)["post_processor"].is_null());
  }
  json flat = kPieces;
  flat.update(
      {{"scores", {0, 0, 0, 0, 0, 0, 0, 0, 0}}, {"token_type", {1, 3, 1, 1, 1, 3, 4, 1, 5}}});
  const json same = TokenizerOf(flat, &warnings);
  ASSERT_EQ(1u, warnings.size());
  EXPECT_THAT(warnings[0], HasSubstr("tokenizer.ggml.scores are all the same"));
  EXPECT_FALSE(same["model"].contains("unk_token"));
  json known = kPieces;
  known["unknown_token_id"] = 2;
  EXPECT_EQ("a", TokenizerOf(known)["model"]["unk_token"]);
  // Added and unused tokens behind all others are in no vocabulary.
  for (const int type : {3, 5}) {
    const json alone = {
        {"model", "llama"}, {"tokens", {"<s>"}}, {"token_type", {type}}, {"scores", {0}}};
    EXPECT_TRUE(TokenizerOf(alone)["model"]["vocab"].empty()) << type;
  }
}

// Of the splits of all pieces the one of the greatest score comes first, then of the longest left.
TEST(GgufVocabulary, MergesOfScores_AreSorted) {
  const json tokenizer = TokenizerOf({{"model", "llama"},
                                      {"tokens", {"a", "b", "aa", "aaa", "ab", "aab", "ac", "ca"}},
                                      {"scores", {-9, -9, -2, -1, -1, -1, -1, -1}}});
  const char* const expected =
      R"([["aa","a"],["aa","b"],["a","aa"],["a","ab"],["a","b"],["a","a"]])";
  EXPECT_EQ(json::parse(expected), tokenizer["model"]["merges"]);
}

TEST(GgufVocabulary, Unigram) {
  const json base = {{"model", "t5"},
                     {"tokens", {"<pad>", "<unk>", "a", "<0x41>", "<unk2>", "x"}},
                     {"token_type", {3, 2, 1, 6, 2, 5}},
                     {"scores", {0, 0, -1, -1, 0, 0}}};
  json all = base;
  all["precompiled_charsmap"] = {-128, 0, 255};
  const json tokenizer = TokenizerOf(all);
  EXPECT_EQ(1, tokenizer["model"]["unk_id"]);
  EXPECT_EQ(true, tokenizer["model"]["byte_fallback"]);
  EXPECT_EQ(5u, tokenizer["model"]["vocab"].size());
  EXPECT_FALSE(tokenizer["normalizer"].is_null());
  EXPECT_TRUE(TokenizerOf(base)["normalizer"].is_null());
  json spaced = base;
  spaced.update({{"remove_extra_whitespaces", false}, {"token_type", {3, 1, 1, 1, 1, 1}}});
  const json other = TokenizerOf(spaced);
  EXPECT_FALSE(other["model"].contains("unk_id"));
  EXPECT_NE(tokenizer["pre_tokenizer"], other["pre_tokenizer"]);
  for (const json& bad : {json("a"), json{1, "a"}, json{256}, json{-129}, json{0.5}}) {
    EXPECT_THAT(TokenizerError(base, {{"precompiled_charsmap", bad}}),
                HasSubstr("tokenizer.ggml.precompiled_charsmap: expected a list of bytes"));
  }
  EXPECT_THAT(TokenizerError(base, {{"scores", json()}}), HasSubstr("a score for each token"));
}

TEST(GgufVocabulary, EndTokensOfDamagedLists) {
  const auto ends = [](const json& metadata) {
    ConfigReader reader(metadata, "m.gguf");
    return EndTokens(&reader);
  };
  const json texts = {"a", "<|im_end|>"};
  using ::testing::ElementsAre;
  EXPECT_THAT(ends({{"tokenizer.ggml.tokens", texts}, {"tokenizer.ggml.token_type", {1, 3}}}),
              ElementsAre(1));
  for (const json& bad : {json(), json(3), json{1, 3, 3}}) {
    EXPECT_TRUE(
        ends({{"tokenizer.ggml.tokens", texts}, {"tokenizer.ggml.token_type", bad}}).empty());
  }
  EXPECT_TRUE(ends({{"tokenizer.ggml.tokens", 2}, {"tokenizer.ggml.token_type", {1, 3}}}).empty());
}

}  // namespace
}  // namespace arn::convert
