// arenite run --save, --restore, --kv-file: a run in two parts gives the same text as a whole one.
#include <filesystem>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class ToolState : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "int8"}));
  }
  std::vector<int32_t> Ids(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", bundle_, "--json", "--ignore-eos"});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    const auto json = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return {};
    return json["ids"].get<std::vector<int32_t>>();
  }

  TempFolder folder_;
  std::string bundle_;
  const std::vector<std::string> prompt_ = {"--prompt", "Once upon a time", "--temperature",
                                            "0.8",      "--seed",           "7"};
  std::vector<std::string> With(const std::vector<std::string>& more) const {
    std::vector<std::string> all = prompt_;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(ToolState, SaveThenRestore_GoesOnAsIfNeverStopped) {
  const std::string state = (folder_ / "chat.state").string();
  const std::vector<int32_t> whole = Ids(With({"--max-tokens", "60"}));
  ASSERT_EQ(60u, whole.size());
  std::vector<int32_t> found = Ids(With({"--max-tokens", "25", "--save", state}));
  const std::vector<int32_t> rest =
      Ids({"--restore", state, "--max-tokens", "35", "--save", state});
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, found);
  // Appends a prompt to the restored sequence.
  EXPECT_EQ(5u, Ids({"--restore", state, "--prompt", " The fox", "--max-tokens", "5"}).size());
}

TEST_F(ToolState, KvExportedAndImported_GoesOnAsIfThePromptHadRun) {
  const std::string kv = (folder_ / "kv.safetensors").string();
  const std::string state = (folder_ / "kv.state").string();
  const std::string text = "Once upon a time, a fox lived by the river and";
  ProcessResult done = RunArenite({"kv", "export", bundle_, "--prompt", text, "-o", kv});
  ASSERT_EQ(0, done.exit_code) << done.err;
  done = RunArenite({"kv", "import", bundle_, kv, "-o", state, "--kv", "f32"});
  ASSERT_EQ(0, done.exit_code) << done.err;
  EXPECT_NE(std::string::npos, done.out.find("kv.state --kv f32"));
  EXPECT_EQ(Ids({"--prompt", text, "--kv", "f32", "--max-tokens", "40", "--temperature", "0"}),
            Ids({"--restore", state, "--kv", "f32", "--max-tokens", "40", "--temperature", "0"}));
  // What was imported can be exported again: the same but for the last token, which ran alone.
  const std::string again = (folder_ / "again.safetensors").string();
  done = RunArenite({"kv", "export", bundle_, "--restore", state, "-o", again});
  ASSERT_EQ(0, done.exit_code) << done.err;
  EXPECT_EQ(std::filesystem::file_size(kv), std::filesystem::file_size(again));
  const std::string first = ReadText(kv);
  EXPECT_NE(std::string::npos, first.find("\"layers.5.values\""));
  EXPECT_EQ(first.substr(0, 2048), ReadText(again).substr(0, 2048));
  std::filesystem::resize_file(kv, std::filesystem::file_size(kv) - 4);
  done = RunArenite({"kv", "import", bundle_, kv, "-o", state});
  EXPECT_NE(0, done.exit_code);
  EXPECT_NE(std::string::npos, done.err.find("layers.5.values")) << done.err;
  EXPECT_NE(0, RunArenite({"kv", "export", bundle_, "-o", again}).exit_code);
}

TEST_F(ToolState, KvFile_TheSameTokensAndNothingIsLeft) {
  const std::string file = (folder_ / "kv").string();
  EXPECT_EQ(Ids(With({"--max-tokens", "40"})),
            Ids(With({"--max-tokens", "40", "--kv-file", file})));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(ToolState, KvFileAuto_SpillsWhatDoesNotFit) {
  const auto ids = [&](const std::string& kv_file, bool is_told) {
    std::vector<std::string> arguments = {"run", bundle_, "--json", "--ignore-eos"};
    const std::vector<std::string> more = With({"--max-tokens", "40", "--kv-file", kv_file});
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> command = AreniteCommand(arguments);
    command.insert(command.begin(), {"env", "TMPDIR=" + folder_.path().string()});
    const ProcessResult result = RunProcess(command);
    EXPECT_EQ(0, result.exit_code) << result.err;
    EXPECT_EQ(is_told, result.err.find("KV cache of") != std::string::npos) << result.err;
    return nlohmann::json::parse(result.out)["ids"].get<std::vector<int32_t>>();
  };
  const std::vector<int32_t> expected = Ids(With({"--max-tokens", "40"}));
  EXPECT_EQ(expected, ids("auto", false));
  EXPECT_EQ(expected, ids("auto:100M", false));
  EXPECT_EQ(expected, ids("auto:100K", true));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(bundle_, entry.path().string());
  }
}

TEST_F(ToolState, WhatCannotBe_SaysWhy) {
  const auto fails = [this](std::vector<std::string> arguments, const std::string& word) {
    arguments.insert(arguments.begin(), {"run", bundle_});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_NE(0, result.exit_code);
    EXPECT_NE(std::string::npos, result.err.find(word)) << result.err;
  };
  fails({"--max-tokens", "3"}, "--restore");
  fails({"--restore", (folder_ / "none").string()}, "none");
  fails({"--restore", bundle_}, "ARNSTATE");
  const std::string state = (folder_ / "s").string();
  Ids(With({"--max-tokens", "3", "--save", state}));
  fails({"--restore", state, "--kv", "f16"}, "int8");
  fails(With({"--kv-file", "auto:much"}), "--kv-file");
}

}  // namespace
}  // namespace arn::test
