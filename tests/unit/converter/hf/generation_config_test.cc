// The defaults of a bundle from generation_config.json and config.json.
#include "converter/hf/generation_config.h"

#include <cstring>

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
  Read({{"encoder_repetition_penalty", 1.05}, {"num_beams", 4}, {"forced_bos_token_id", 3}});
  EXPECT_THAT(warnings_,
              ElementsAre("generation_config.json: encoder_repetition_penalty 1.05 is not applied",
                          "generation_config.json: num_beams 4 is not applied",
                          "generation_config.json: forced_bos_token_id 3 is not applied"));
  Read({{"repetition_penalty", 1.0},
        {"suppress_tokens", json::array()},
        {"num_beams", 1},
        {"typical_p", 1.0},
        {"sequence_bias", json::array()},
        {"max_new_tokens", 32},
        {"transformers_version", "5.1.0"}});
  EXPECT_THAT(warnings_, IsEmpty());
  Read(nullptr, {{"guidance_scale", 1.2}, {"hidden_size", 8}});
  EXPECT_THAT(warnings_, ElementsAre("config.json: guidance_scale 1.2 is not applied"));
}

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// By the ids of runtime/sampling/options.def.
TEST_F(GenerationTest, OtherOptions_AreTagged) {
  EXPECT_THAT(Read({{"repetition_penalty", 1.05}}).options,
              ElementsAre(SamplingEntry{6, {Bits(1.05f)}}));
  EXPECT_THAT(Read(nullptr, {{"repetition_penalty", 1.2}}).options,
              ElementsAre(SamplingEntry{6, {Bits(1.2f)}}));
  EXPECT_THAT(
      Read({{"no_repeat_ngram_size", 3}, {"typical_p", 0.9}, {"min_new_tokens", 4}}).options,
      ElementsAre(SamplingEntry{10, {3}}, SamplingEntry{11, {4}}, SamplingEntry{12, {Bits(0.9f)}}));
  EXPECT_THAT(Read({{"suppress_tokens", {-1, 5, 6, 100}}, {"begin_suppress_tokens", {7}}}).options,
              ElementsAre(SamplingEntry{26, {5, 6}}, SamplingEntry{27, {7}}));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("suppress_tokens 100 is outside the vocabulary")));
  EXPECT_THAT(
      Read({{"bad_words_ids", {{1, 2}, {3}}}, {"sequence_bias", {{{4, 5}, -2.5}, {{6}, 1.0}}}})
          .options,
      ElementsAre(SamplingEntry{23, {4, 5, UINT32_MAX, 6}},
                  SamplingEntry{24, {Bits(-2.5f), Bits(1.0f)}},
                  SamplingEntry{25, {1, 2, UINT32_MAX, 3}}));
  const json config = {{"decoder_start_token_id", 2}};
  EXPECT_THAT(Read({{"forced_bos_token_id", 3}, {"forced_eos_token_id", 4}}, config).options,
              ElementsAre(SamplingEntry{21, {3}}, SamplingEntry{22, {4}}));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(GenerationTest, OptionsThatCannotBe_AreErrors) {
  EXPECT_THAT(ErrorOf({{"repetition_penalty", 0}}),
              AllOf(HasSubstr("repetition_penalty"), HasSubstr("above 0")));
  EXPECT_THAT(ErrorOf({{"no_repeat_ngram_size", 2.5}}), HasSubstr("no_repeat_ngram_size"));
  EXPECT_THAT(ErrorOf({{"bad_words_ids", {{100}}}}), HasSubstr("bad_words_ids"));
  EXPECT_THAT(ErrorOf({{"bad_words_ids", {1, 2}}}), HasSubstr("a list of lists of token ids"));
  EXPECT_THAT(ErrorOf({{"sequence_bias", {{{1}, "x"}}}}), HasSubstr("sequence_bias"));
  EXPECT_THAT(ErrorOf({{"forced_eos_token_id", {1, 2}}}), HasSubstr("one token id"));
}

TEST_F(GenerationTest, UnknownKeys_AreNamed) {
  Read({{"brand_new_sampler", 3}, {"not_used", false}});
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("unknown keys, ignored: brand_new_sampler")));
}

TEST_F(GenerationTest, Transcription_NamesLanguagesAndTasks) {
  const json whisper = {{"no_timestamps_token_id", 40},
                        {"is_multilingual", true},
                        {"lang_to_id", {{"<|en|>", 20}, {"<|yue|>", 21}}},
                        {"task_to_id", {{"transcribe", 31}, {"translate", 30}}},
                        {"max_initial_timestamp_index", 50},
                        {"alignment_heads", {{1, 2}}},
                        {"return_timestamps", false}};
  TranscriptionSpec expected;
  expected.exists = true;
  expected.no_timestamps_id = 40;
  expected.max_initial_timestamp = 50;
  expected.alignment_heads = {{1, 2}};
  json english = whisper;
  english["is_multilingual"] = false;
  EXPECT_EQ(expected, Read(english).transcription);
  expected.transcribe_id = 31;
  expected.translate_id = 30;
  expected.languages = {{"en", 20}, {"yue", 21}};
  EXPECT_EQ(expected, Read(whisper).transcription);
  EXPECT_THAT(warnings_, IsEmpty());
  json without = whisper;
  without.erase("no_timestamps_token_id");
  EXPECT_EQ(TranscriptionSpec(), Read(without).transcription);
}

TEST_F(GenerationTest, PreviousId_IsNamedOrTheLastButOneThatIsSuppressed) {
  json whisper = {{"no_timestamps_token_id", 40}};
  EXPECT_EQ(-1, Read(whisper).transcription.previous_id);
  whisper["suppress_tokens"] = {3, 35, 36};
  EXPECT_EQ(35, Read(whisper).transcription.previous_id);
  whisper["prev_sot_token_id"] = 34;
  EXPECT_EQ(34, Read(whisper).transcription.previous_id);
  EXPECT_THAT(warnings_, IsEmpty());
  whisper["prev_sot_token_id"] = 3000;
  EXPECT_THAT(ErrorOf(whisper), AllOf(HasSubstr("prev_sot_token_id"), HasSubstr("3000")));
}

// Distilled checkpoints may have those of their teacher.
TEST_F(GenerationTest, AlignmentHeadsThatTheDecoderHasNot_AreLeftOutWithAWarning) {
  const json whisper = {{"no_timestamps_token_id", 40}, {"alignment_heads", {{1, 2}, {7, 0}}}};
  json config = {{"decoder_layers", 8}, {"decoder_attention_heads", 3}};
  const std::vector<AlignmentHead> heads = {{1, 2}, {7, 0}};
  EXPECT_EQ(heads, Read(whisper, config).transcription.alignment_heads);
  EXPECT_THAT(warnings_, IsEmpty());
  config["decoder_layers"] = 2;
  EXPECT_THAT(Read(whisper, config).transcription.alignment_heads, IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("generation_config.json: alignment_heads"),
                                           HasSubstr("[7, 0]"), HasSubstr("2 layers of 3 heads"))));
}

TEST_F(GenerationTest, MedianFilterWidth_IsThatOfTheConfig) {
  const json whisper = {{"no_timestamps_token_id", 40}, {"alignment_heads", {{1, 2}}}};
  EXPECT_EQ(7u, Read(whisper).transcription.alignment_median);
  EXPECT_EQ(5u, Read(whisper, {{"median_filter_width", 5}}).transcription.alignment_median);
  for (const int width : {0, 8, 33}) {
    EXPECT_THAT(test::ErrorOf([&] {
                  Read(whisper, {{"median_filter_width", width}});
                }),
                AllOf(HasSubstr("median_filter_width"), HasSubstr("an odd number from 1 to 31")));
  }
}

TEST_F(GenerationTest, TranscriptionThatCannotBe_IsAnError) {
  EXPECT_THAT(ErrorOf({{"no_timestamps_token_id", 99}}),
              AllOf(HasSubstr("no_timestamps_token_id"), HasSubstr("99")));
  EXPECT_THAT(ErrorOf({{"lang_to_id", {{"<|en|>", 100}}}}), HasSubstr("lang_to_id"));
  EXPECT_THAT(ErrorOf({{"lang_to_id", {1, 2}}}), HasSubstr("lang_to_id"));
  for (const json& heads :
       {json(3), json{1, 2}, json{{1, 2, 3}}, json{{1, -1}}, json{{65536, 0}}}) {
    EXPECT_THAT(ErrorOf({{"alignment_heads", heads}}),
                AllOf(HasSubstr("alignment_heads"), HasSubstr("pairs of a layer and a head")));
  }
  EXPECT_THAT(
      ErrorOf({{"no_timestamps_token_id", 40}, {"lang_to_id", {{"<|unpronounceable|>", 1}}}}),
      HasSubstr("at most 11 letters"));
  EXPECT_THAT(ErrorOf({{"task_to_id", {{"transcribe", "x"}}}}), HasSubstr("task_to_id"));
  EXPECT_THAT(ErrorOf({{"max_initial_timestamp_index", -1}}),
              HasSubstr("max_initial_timestamp_index"));
}

}  // namespace
}  // namespace arn::convert
