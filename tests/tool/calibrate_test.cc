// arenite-convert --calibrate and --bits, and arenite eval --compare, on small seeded checkpoints.
#include <filesystem>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

class CalibrateTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    TinyCheckpoint checkpoint;
    checkpoint.vocab = 1024;
    checkpoint.max_context = 256;
    checkpoint.hidden = 96;
    checkpoint.ffn = 160;
    checkpoint.heads = 6;
    checkpoint.head_dim = 16;
    checkpoint.amplitude = 0.2f;
    WriteTinyCheckpoint(folder_ / "tiny", checkpoint);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      std::filesystem::copy_file(SourcePath("models/fable/fable-2m") / name,
                                 folder_ / "tiny" / name);
    }
    const std::string text = ReadText(SourcePath("models/fable/heldout.txt"));
    WriteFile(folder_ / "judge.txt", text.substr(0, 1500));
    WriteFile(folder_ / "calibrate.txt", text.substr(1500));
  }

  std::string Make(const std::string& name, const std::vector<std::string>& options) {
    EXPECT_TRUE(Convert(folder_ / "tiny", folder_ / name, options));
    return (folder_ / name).string();
  }
  std::vector<std::string> Calibrated(std::vector<std::string> options) const {
    options.insert(options.end(), {"--calibrate", (folder_ / "calibrate.txt").string()});
    return options;
  }
  ProcessResult Refused(std::vector<std::string> options) {
    std::vector<std::string> command = {ConverterPath(), (folder_ / "tiny").string(), "-o",
                                        (folder_ / "refused.arn").string()};
    command.insert(command.end(), options.begin(), options.end());
    ProcessResult result = RunProcess(command);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused.arn"));
    return result;
  }
  // Returns the rows of eval --compare.
  nlohmann::json Table(const std::string& reference, const std::vector<std::string>& others) {
    std::vector<std::string> arguments = {
        "eval", reference, "--file", (folder_ / "judge.txt").string(), "--kv", "f32", "--json"};
    for (const std::string& other : others) arguments.insert(arguments.end(), {"--compare", other});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("bundles");
  }

  TempFolder folder_;
};

TEST_F(CalibrateTest, Calibrated_NearerToTheFloatModel) {
  const nlohmann::json rows =
      Table(Make("f32.arn", {"--weights", "f32"}),
            {Make("int4.arn", {"--weights", "int4"}),
             Make("calibrated.arn", Calibrated({"--weights", "int4"})),
             Make("bits.arn", Calibrated({"--weights", "int4", "--bits", "6.8"}))});
  ASSERT_EQ(rows.size(), 4u);
  const auto kl = [&](size_t i) { return rows[i].at("kl").get<double>(); };
  EXPECT_LT(kl(2), 0.8 * kl(1));
  EXPECT_LT(kl(3), kl(2));
  EXPECT_EQ(rows[0].at("bits_per_weight"), 32.0);
  EXPECT_EQ(rows[1].at("bits_per_weight"), rows[2].at("bits_per_weight"));
  EXPECT_GT(rows[3].at("bits_per_weight"), rows[2].at("bits_per_weight"));
  EXPECT_LE(rows[3].at("bits_per_weight"), 6.8);
}

// Without a text the model generates the calibration text.
TEST_F(CalibrateTest, Bits_WithoutAText_AreSpentWhereTheyHelp) {
  const std::string own = Make("own.arn", {"--weights", "int4", "--bits", "6.8"});
  const std::string again =
      Make("again.arn", {"--weights", "int4", "--bits", "6.8", "--threads", "3"});
  EXPECT_EQ(ReadFile(own), ReadFile(again));
  const nlohmann::json rows = Table(
      Make("f32.arn", {"--weights", "f32"}),
      {Make("int4.arn", {"--weights", "int4"}), own, Make("int8.arn", {"--weights", "int8"})});
  const auto kl = [&](size_t i) { return rows[i].at("kl").get<double>(); };
  EXPECT_LT(kl(2), 0.7 * kl(1));
  EXPECT_LT(kl(3), kl(2));
  EXPECT_GT(rows[2].at("bits_per_weight"), rows[1].at("bits_per_weight"));
  EXPECT_LE(rows[2].at("bits_per_weight"), 6.8);
  std::filesystem::remove(folder_ / "tiny/tokenizer.json");
  Make("ids.arn", {"--weights", "int4", "--bits", "6.8"});
}

// The remaining divergence of int8 without quantised activations.
TEST_F(CalibrateTest, ActivationsOf16Bits_AreNearerToTheFloatModel) {
  const std::string exact = Make("f32.arn", {"--weights", "f32"});
  const std::string rounded = Make("int8.arn", {"--weights", "int8"});
  const auto kl = [&](const char* bits) {
    const ProcessResult result =
        RunArenite({"eval", exact, "--file", (folder_ / "judge.txt").string(), "--kv", "f32",
                    "--json", "--activation-bits", bits, "--compare", rounded});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("bundles").at(1).at("kl").get<double>();
  };
  EXPECT_LT(kl("16"), 0.5 * kl("8"));
}

TEST_F(CalibrateTest, AnyThreads_SameBytes) {
  const std::string one = Make("1.arn", Calibrated({"--weights", "int4", "--threads", "1"}));
  const std::string three = Make("3.arn", Calibrated({"--weights", "int4", "--threads", "3"}));
  EXPECT_EQ(ReadFile(one), ReadFile(three));
}

TEST_F(CalibrateTest, LeavesNothingBehind) {
  std::filesystem::create_directory(folder_ / "left");
  Make("left/bits.arn", Calibrated({"--weights", "int4", "--bits", "6.5"}));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "left")) {
    files += entry.exists() ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(CalibrateTest, WhatCannotBe_IsRefusedByName) {
  const std::string absent = (folder_ / "absent.txt").string();
  EXPECT_THAT(Refused({"--weights", "int4", "--calibrate", absent}).err, HasSubstr(absent));
  WriteFile(folder_ / "empty.txt", std::string());
  EXPECT_THAT(Refused({"--weights", "int4", "--calibrate", (folder_ / "empty.txt").string()}).err,
              HasSubstr("empty.txt: the text has 0 tokens"));
  EXPECT_THAT(Refused(Calibrated({"--weights", "bf16"})).err, HasSubstr("--calibrate"));
  EXPECT_THAT(Refused(Calibrated({"--bits", "6"})).err, HasSubstr("--bits"));
  EXPECT_THAT(Refused(Calibrated({"--weights", "int4", "--bits", "4.1"})).err,
              HasSubstr("--bits 4.1: even with all layers in int4"));
  std::filesystem::remove(folder_ / "tiny/tokenizer.json");
  EXPECT_THAT(Refused(Calibrated({"--weights", "int4"})).err, HasSubstr("no tokenizer"));
}

TEST_F(CalibrateTest, Compare_AnotherVocabularyIsRefused) {
  const std::string bundle = Make("int8.arn", {});
  TinyCheckpoint other;
  WriteTinyCheckpoint(folder_ / "tiny2", other);
  ASSERT_TRUE(Convert(folder_ / "tiny2", folder_ / "other.arn", {}));
  const ProcessResult result =
      RunArenite({"eval", bundle, "--file", (folder_ / "judge.txt").string(), "--compare",
                  (folder_ / "other.arn").string()});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("a vocabulary of 64"));
}

}  // namespace
}  // namespace arn::test
