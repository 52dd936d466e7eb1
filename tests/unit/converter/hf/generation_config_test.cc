// The defaults of a bundle from generation_config.json and config.json.
#include "converter/hf/generation_config.h"

#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kVocab = 100;

class GenerationTest : public ::testing::Test {
 protected:
  // null: no generation_config.json.
  GenerationSpec Read(const json& generation, const json& config = json::object()) {
    warnings_.clear();
    GenerationSources sources;
    sources.config = &config;
    sources.config_label = "config.json";
    if (!generation.is_null()) sources.generation = &generation;
    sources.generation_label = "generation_config.json";
    return ReadGeneration(sources, kVocab, &warnings_);
  }

  std::string ErrorOf(const json& generation) {
    return test::ErrorOf([&] { Read(generation); });
  }

  std::vector<std::string> warnings_;
};

TEST_F(GenerationTest, Nothing_IsGreedyWithoutIds) {
  for (const json& generation : {json(), json::object()}) {
    EXPECT_EQ(GenerationSpec(), Read(generation));
    EXPECT_THAT(warnings_, IsEmpty());
  }
}

TEST_F(GenerationTest, Ids_AreNumbersOrLists_TheGenerationConfigsBeforeTheConfigs) {
  const json config = {{"eos_token_id", {7, 8, 7}}, {"bos_token_id", {1, 2}}, {"pad_token_id", 0}};
  GenerationSpec spec = Read(nullptr, config);
  EXPECT_THAT(spec.eos_ids, ElementsAre(7, 8));
  EXPECT_THAT(spec.bos_ids, ElementsAre(1, 2));
  EXPECT_EQ(0, spec.pad_id);
  spec = Read({{"eos_token_id", 9}, {"bos_token_id", {3}}, {"pad_token_id", nullptr}}, config);
  EXPECT_THAT(spec.eos_ids, ElementsAre(9));
  EXPECT_THAT(spec.bos_ids, ElementsAre(3));
  EXPECT_EQ(0, spec.pad_id);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(GenerationTest, IdsThatAreNone_AreLeftOut) {
  const GenerationSpec spec = Read({{"eos_token_id", {99, 100, -1}}, {"bos_token_id", -1}});
  EXPECT_THAT(spec.eos_ids, ElementsAre(99));
  EXPECT_THAT(spec.bos_ids, IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("eos_token_id 100 is outside the vocabulary")));
  EXPECT_THAT(ErrorOf({{"eos_token_id", "</s>"}}),
              AllOf(HasSubstr("eos_token_id"), HasSubstr("\"</s>\"")));
  EXPECT_THAT(ErrorOf({{"bos_token_id", {1, 2.5}}}),
              AllOf(HasSubstr("bos_token_id"), HasSubstr("2.5")));
}

TEST_F(GenerationTest, Sampling_IsTheGenerationConfigs) {
  const json config = {{"do_sample", true}, {"temperature", 3.0}, {"top_k", 5}};
  const json generation = {
      {"do_sample", true}, {"temperature", 0.6}, {"top_k", 20}, {"top_p", 0.9}, {"min_p", 0.05}};
  GenerationSpec spec = Read(generation, config);
  EXPECT_TRUE(spec.do_sample);
  EXPECT_FLOAT_EQ(0.6f, spec.temperature);
  EXPECT_EQ(20u, spec.top_k);
  EXPECT_FLOAT_EQ(0.9f, spec.top_p);
  EXPECT_FLOAT_EQ(0.05f, spec.min_p);
  // A missing key gets the neutral value, not that of config.json.
  spec = Read({{"do_sample", true}}, config);
  EXPECT_FLOAT_EQ(1.0f, spec.temperature);
  EXPECT_EQ(0u, spec.top_k);
  // config.json applies only without generation_config.json.
  spec = Read(nullptr, config);
  EXPECT_TRUE(spec.do_sample);
  EXPECT_FLOAT_EQ(3.0f, spec.temperature);
  EXPECT_EQ(5u, spec.top_k);
}

TEST_F(GenerationTest, WithoutDoSample_SettingsAreKeptAndNothingIsSampled) {
  const GenerationSpec spec = Read({{"do_sample", false}, {"temperature", 0.6}});
  EXPECT_FALSE(spec.do_sample);
  EXPECT_FLOAT_EQ(0.6f, spec.temperature);
  EXPECT_FALSE(Read({{"temperature", 0.6}}).do_sample);
}

TEST_F(GenerationTest, NeutralValues_AreOff) {
  const GenerationSpec neutral = Read({{"do_sample", true}});
  EXPECT_EQ(neutral, Read({{"do_sample", true}, {"top_k", 0}, {"top_p", 1.0}, {"min_p", 0}}));
  EXPECT_EQ(neutral, Read({{"do_sample", true}, {"top_k", -1}, {"top_p", nullptr}}));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(GenerationTest, ExtremesThatLeaveOneToken_BecomeTopK1) {
  for (const json& one : {json{{"top_p", 0}}, json{{"min_p", 1}}}) {
    const GenerationSpec spec = Read(one);
    EXPECT_EQ(1u, spec.top_k);
    EXPECT_EQ(1.0f, spec.top_p);
    EXPECT_EQ(0.0f, spec.min_p);
  }
}

TEST_F(GenerationTest, ValuesThatCannotBe_AreErrors) {
  EXPECT_THAT(ErrorOf({{"temperature", -1}}), AllOf(HasSubstr("temperature"), HasSubstr("-1")));
  EXPECT_THAT(ErrorOf({{"top_p", 1.5}}), AllOf(HasSubstr("top_p"), HasSubstr("1.5")));
  EXPECT_THAT(ErrorOf({{"min_p", "low"}}), AllOf(HasSubstr("min_p"), HasSubstr("low")));
  EXPECT_THAT(ErrorOf({{"top_k", -2}}), AllOf(HasSubstr("top_k"), HasSubstr("-2")));
  EXPECT_THAT(ErrorOf({{"do_sample", 1}}), AllOf(HasSubstr("do_sample"), HasSubstr("1")));
}

TEST_F(GenerationTest, WhatIsNotApplied_IsNamedWithItsValue) {
  Read({{"repetition_penalty", 1.05}, {"suppress_tokens", {1, 2}}, {"num_beams", 4}});
  EXPECT_THAT(warnings_,
              ElementsAre("generation_config.json: repetition_penalty 1.05 is not applied",
                          "generation_config.json: num_beams 4 is not applied",
                          "generation_config.json: suppress_tokens [1,2] is not applied"));
  Read({{"repetition_penalty", 1.0},
        {"suppress_tokens", json::array()},
        {"num_beams", 1},
        {"typical_p", 1.0},
        {"max_new_tokens", 32},
        {"transformers_version", "5.1.0"}});
  EXPECT_THAT(warnings_, IsEmpty());
  Read(nullptr, {{"repetition_penalty", 1.2}, {"hidden_size", 8}});
  EXPECT_THAT(warnings_, ElementsAre("config.json: repetition_penalty 1.2 is not applied"));
}

TEST_F(GenerationTest, UnknownKeys_AreNamed) {
  Read({{"brand_new_sampler", 3}, {"not_used", false}});
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("unknown keys, ignored: brand_new_sampler")));
}

}  // namespace
}  // namespace arn::convert
