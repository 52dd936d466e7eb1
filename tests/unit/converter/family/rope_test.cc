#include "converter/family/rope.h"

#include <cmath>

#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::ErrorOf;
using ::testing::AllOf;
using ::testing::HasSubstr;

RopeSpec Read(const nlohmann::json& config, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  ConfigReader reader(config, "config.json");
  RopeQuery query;
  query.head_dim = config.value("head_dim", 16u);
  query.max_context = config.value("max_position_embeddings", 512u);
  return ReadRope(&reader, query, warnings == nullptr ? &ignored : warnings);
}

RopeSpec ReadWith(const nlohmann::json& config, const RopeQuery& query) {
  std::vector<std::string> warnings;
  ConfigReader reader(config, "config.json");
  return ReadRope(&reader, query, &warnings);
}

std::string ErrorOfRope(const nlohmann::json& config) {
  return ErrorOf([&] { Read(config); });
}

// data/rope_tables.json comes from transformers (make_rope_tables.py). Its vectorised pow() may be
// off by one unit in the last place, and so may all derived values.
TEST(Rope, EveryCase_MatchesTransformers) {
  const nlohmann::json cases = LoadJson(ARN_ROPE_TABLES);
  ASSERT_GE(cases.size(), 14u);
  for (const auto& [name, expected] : cases.items()) {
    SCOPED_TRACE(name);
    const RopeSpec rope = Read(expected["config"]);
    EXPECT_EQ(rope.rotary_dim, expected["config"]["head_dim"]);
    EXPECT_FLOAT_EQ(rope.amplitude, expected["amplitude"].get<float>());
    ASSERT_EQ(rope.inv_freq.size(), expected["inv_freq"].size());
    for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
      const float want = static_cast<float>(expected["inv_freq"][i].get<double>());
      EXPECT_NEAR(rope.inv_freq[i], want, 2.4e-7f * want) << i;
    }
  }
}

TEST(Rope, RopeScaling_HasPrecedenceOverParameters) {
  const RopeSpec rope = Read({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}},
                              {"rope_parameters", {{"rope_type", "linear"}, {"factor", 8.0}}}});
  EXPECT_EQ(rope.inv_freq[0], 0.5f);
}

TEST(Rope, PartOfAHead_IsTheFirstElements) {
  RopeQuery query;
  query.head_dim = 16;
  query.max_context = 512;
  query.has_partial_rotary = query.has_rotary_keys = true;
  query.partial_rotary = 0.25;
  EXPECT_EQ(4u, ReadWith(nlohmann::json::object(), query).rotary_dim);
  EXPECT_EQ(8u, ReadWith({{"rotary_pct", 0.5}}, query).rotary_dim);
  EXPECT_EQ(12u, ReadWith({{"partial_rotary_factor", 0.75}}, query).rotary_dim);
  const RopeSpec rope = ReadWith(
      {{"rope_parameters", {{"partial_rotary_factor", 0.5}, {"rope_theta", 100.0}}}}, query);
  // The frequencies use the rotary dimension as head size.
  ASSERT_EQ(4u, rope.inv_freq.size());
  EXPECT_FLOAT_EQ(1.0f / std::pow(100.0f, 6.0f / 8.0f), rope.inv_freq[3]);
  EXPECT_THAT(ErrorOf([&] {
                ReadWith({{"partial_rotary_factor", 1.5}}, query);
              }),
              HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(ErrorOf([&] {
                ReadWith({{"partial_rotary_factor", 0.2}}, query);
              }),
              HasSubstr("3 of the 16 elements"));
}

TEST(Rope, LayersWithAWindow_HaveTheirOwn) {
  RopeQuery query;
  query.head_dim = 16;
  query.max_context = 512;
  query.theta = 1e6;
  query.is_by_window = true;
  const nlohmann::json by_type = {
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 1e5}}},
        {"sliding_attention", {{"rope_theta", 500.0}}}}}};
  const nlohmann::json older = {{"rope_theta", 1e5},
                                {"rope_local_base_freq", 500.0},
                                {"rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}}}};
  for (const nlohmann::json& config : {by_type, older}) {
    query.has_window = false;
    EXPECT_EQ(0.25f, ReadWith(config, query).inv_freq[0]);
    EXPECT_FLOAT_EQ(0.25f / std::pow(1e5f, 14.0f / 16.0f), ReadWith(config, query).inv_freq[7]);
    query.has_window = true;
    EXPECT_EQ(1.0f, ReadWith(config, query).inv_freq[0]);
    EXPECT_FLOAT_EQ(1.0f / std::pow(500.0f, 14.0f / 16.0f), ReadWith(config, query).inv_freq[7]);
  }
  query.local_theta = 10.0;
  EXPECT_FLOAT_EQ(1.0f / std::pow(10.0f, 14.0f / 16.0f),
                  ReadWith(nlohmann::json::object(), query).inv_freq[7]);
}

TEST(Rope, LongRope_HasTwoTables) {
  nlohmann::json config = {
      {"head_dim", 4},
      {"max_position_embeddings", 4096},
      {"original_max_position_embeddings", 64},
      {"rope_scaling",
       {{"type", "longrope"}, {"short_factor", {1.0, 2.0}}, {"long_factor", {4.0, 8.0}}}}};
  const RopeSpec rope = Read(config);
  EXPECT_EQ(64u, rope.short_context);
  EXPECT_EQ((std::vector<float>{1.0f, 1.0f / (2.0f * 100.0f)}), rope.inv_freq);
  EXPECT_EQ((std::vector<float>{0.25f, 1.0f / (8.0f * 100.0f)}), rope.long_inv_freq);
  // sqrt(1 + ln(4096 / 64) / ln 64)
  EXPECT_FLOAT_EQ(std::sqrt(2.0f), rope.amplitude);
  config["rope_scaling"]["long_factor"] = {4.0};
  EXPECT_THAT(ErrorOfRope(config), HasSubstr("long_factor: expected a list of 2 positive numbers"));
  config["rope_scaling"]["long_factor"] = {4.0, -1.0};
  EXPECT_THAT(ErrorOfRope(config), HasSubstr("long_factor"));
}

TEST(Rope, UnknownTypes_AreRefusedByName) {
  for (const char* type : {"spiral", "mrope"}) {
    EXPECT_THAT(ErrorOfRope({{"rope_scaling", {{"rope_type", type}, {"factor", 2.0}}}}),
                AllOf(HasSubstr("rope_scaling"), HasSubstr(type), HasSubstr("not supported")));
  }
}

TEST(Rope, UnknownKey_IsRefusedByName) {
  EXPECT_THAT(
      ErrorOfRope({{"rope_parameters", {{"rope_type", "default"}, {"mrope_section", {1, 2}}}}}),
      AllOf(HasSubstr("not supported"), HasSubstr("mrope_section")));
}

TEST(Rope, KeyWithoutEffect_GivesWarning) {
  std::vector<std::string> warnings;
  Read({{"rope_parameters", {{"rope_type", "default"}, {"factor", 4.0}}}}, &warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("no effect on type default: factor"));
}

TEST(Rope, MissingFactor_NamesKey) {
  EXPECT_THAT(ErrorOfRope({{"rope_parameters", {{"rope_type", "linear"}}}}),
              HasSubstr("rope_parameters: factor: expected a positive number, found nothing"));
  EXPECT_THAT(ErrorOfRope({{"rope_parameters",
                            {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 1}}}}),
              HasSubstr("high_freq_factor"));
}

TEST(Rope, PartialRotation_IsRefused) {
  EXPECT_THAT(ErrorOfRope({{"partial_rotary_factor", 0.5}}), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(ErrorOfRope({{"rope_parameters", {{"partial_rotary_factor", 0.25}}}}),
              HasSubstr("partial_rotary_factor"));
  EXPECT_EQ(Read({{"partial_rotary_factor", 1.0}}).rotary_dim, 16u);
}

TEST(Rope, ParametersByLayerType_AreRefused) {
  EXPECT_THAT(ErrorOfRope({{"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}}),
              HasSubstr("full_attention: parameters per layer type are not supported"));
}

TEST(Rope, BadValues_NameKey) {
  EXPECT_THAT(ErrorOfRope({{"rope_theta", "10000"}}), HasSubstr("rope_theta: expected a number"));
  EXPECT_THAT(ErrorOfRope({{"rope_theta", -1}}), HasSubstr("rope_theta: expected a positive"));
  EXPECT_THAT(ErrorOfRope({{"rope_scaling", "linear"}}), HasSubstr("expected a JSON object"));
  EXPECT_THAT(ErrorOfRope({{"head_dim", 15}}), HasSubstr("odd"));
}

}  // namespace
}  // namespace arn::convert
