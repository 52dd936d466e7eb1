#include "converter/rope.h"

#include <cmath>

#include "converter/hf/json_file.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::ErrorOf;
using ::testing::AllOf;
using ::testing::HasSubstr;

RopeSpec Read(const nlohmann::json& config, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  ConfigReader reader(config, "config.json");
  return ReadRope(&reader, config.value("head_dim", 16u),
                  config.value("max_position_embeddings", 512u),
                  warnings == nullptr ? &ignored : warnings);
}

std::string ErrorOfRope(const nlohmann::json& config) {
  return ErrorOf([&] { Read(config); });
}

// data/rope_tables.json comes from transformers (make_rope_tables.py). Its pow() is a vectorised
// one that may be off by a unit of the last place, and so may everything that follows from it.
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

TEST(Rope, UnknownTypes_AreRefusedByName) {
  for (const char* type : {"dynamic", "longrope", "proportional", "mrope", "su"}) {
    EXPECT_THAT(ErrorOfRope({{"rope_scaling", {{"rope_type", type}, {"factor", 2.0}}}}),
                AllOf(HasSubstr("rope_scaling"), HasSubstr(type), HasSubstr("not supported")));
  }
}

TEST(Rope, UnknownKey_IsRefusedByName) {
  EXPECT_THAT(
      ErrorOfRope({{"rope_parameters", {{"rope_type", "default"}, {"mrope_section", {1, 2}}}}}),
      AllOf(HasSubstr("not understood"), HasSubstr("mrope_section")));
}

TEST(Rope, KeyWithoutEffect_GivesWarning) {
  std::vector<std::string> warnings;
  Read({{"rope_parameters", {{"rope_type", "default"}, {"factor", 4.0}}}}, &warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("without effect on type default: factor"));
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
              HasSubstr("full_attention: parameters by layer type are not supported"));
}

TEST(Rope, BadValues_NameKey) {
  EXPECT_THAT(ErrorOfRope({{"rope_theta", "10000"}}), HasSubstr("rope_theta: expected a number"));
  EXPECT_THAT(ErrorOfRope({{"rope_theta", -1}}), HasSubstr("rope_theta: expected a positive"));
  EXPECT_THAT(ErrorOfRope({{"rope_scaling", "linear"}}), HasSubstr("expected a JSON object"));
  EXPECT_THAT(ErrorOfRope({{"head_dim", 15}}), HasSubstr("odd"));
}

}  // namespace
}  // namespace arn::convert
