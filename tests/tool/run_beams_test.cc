// arenite run --beams on the model in models/.
#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class RunBeamsTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "f32"}));
  }

  ProcessResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"run", bundle_, "--prompt", "Once upon a time, there was", "--kv", "f32"});
    return RunArenite(arguments);
  }
  nlohmann::json RunJson(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const ProcessResult result = Run(std::move(arguments));
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }

  TempFolder folder_;
  std::string bundle_;
};

TEST_F(RunBeamsTest, OneBeam_IsTheGreedyText) {
  const auto expected = nlohmann::json::parse(ReadText(SourcePath("models/fable/expected.json")));
  const nlohmann::json& wanted = expected["prompts"][0];
  const nlohmann::json json = RunJson({"--beams", "1", "--max-tokens", "64"});
  ASSERT_EQ(1u, json["sequences"].size());
  EXPECT_EQ(wanted["greedy_ids"], json["sequences"][0]["ids"]);
  EXPECT_EQ(wanted["greedy_text"], json["sequences"][0]["text"]);
  EXPECT_EQ("length", json["sequences"][0]["finish"]);
  EXPECT_EQ(64, json["steps"]);
}

TEST_F(RunBeamsTest, Json_ListsDifferentSequencesBestFirst) {
  const nlohmann::json one = RunJson({"--beams", "1", "--max-tokens", "20"});
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--length-penalty", "0.5"}}) {
    std::vector<std::string> arguments = {"--beams",      "6",  "--return-sequences", "4",
                                          "--max-tokens", "20", "--early-stopping",   "never"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const nlohmann::json json = RunJson(arguments);
    const nlohmann::json& sequences = json["sequences"];
    ASSERT_EQ(4u, sequences.size());
    for (size_t i = 1; i < 4; ++i) {
      EXPECT_GE(sequences[i - 1]["score"].get<double>(), sequences[i]["score"].get<double>());
      EXPECT_NE(sequences[i - 1]["ids"], sequences[i]["ids"]);
    }
    if (more.empty()) {
      EXPECT_GE(sequences[0]["score"].get<double>(), one["sequences"][0]["score"].get<double>());
    }
    EXPECT_GT(json["memory"]["kv_used"].get<uint64_t>(), 0u);
    EXPECT_LE(json["memory"]["kv_used"].get<uint64_t>(), json["memory"]["kv"].get<uint64_t>());
  }
}

// Only the diversity penalty makes groups differ.
TEST_F(RunBeamsTest, Groups_DifferByThePenalty) {
  std::vector<std::string> arguments = {
      "--beams", "3", "--beam-groups", "3", "--return-sequences", "3", "--max-tokens", "12"};
  const nlohmann::json same = RunJson(arguments)["sequences"];
  ASSERT_EQ(3u, same.size());
  EXPECT_EQ(same[0]["ids"], same[2]["ids"]);
  arguments.insert(arguments.end(), {"--diversity-penalty", "50"});
  const nlohmann::json different = RunJson(arguments)["sequences"];
  ASSERT_EQ(3u, different.size());
  EXPECT_NE(different[0]["ids"][0], different[1]["ids"][0]);
  EXPECT_NE(different[1]["ids"][0], different[2]["ids"][0]);
  EXPECT_NE(different[0]["ids"][0], different[2]["ids"][0]);
}

TEST_F(RunBeamsTest, Text_HasALineASequence) {
  const ProcessResult result =
      Run({"--beams", "2", "--return-sequences", "2", "--max-tokens", "5"});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ('-', result.out[0]);
  EXPECT_NE(std::string::npos, result.err.find("steps of at most 2 beams"));
}

TEST_F(RunBeamsTest, OptionsThatDoNotGoTogether_AreRefused) {
  EXPECT_EQ(2, Run({"--beams", "2", "--stop", "x"}).exit_code);
  EXPECT_EQ(2, Run({"--beams", "2", "--temperature", "1"}).exit_code);
  EXPECT_EQ(2, Run({"--beams", "2", "--save", "state.arns"}).exit_code);
  EXPECT_EQ(2, Run({"--beam-groups", "2"}).exit_code);
  EXPECT_EQ(2, Run({"--beams", "2", "--early-stopping", "soon"}).exit_code);
  const ProcessResult result = Run({"--beams", "4", "--beam-groups", "3"});
  EXPECT_EQ(1, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("num_beam_groups is 3")) << result.err;
}

}  // namespace
}  // namespace arn::test
