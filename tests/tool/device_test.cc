// Device information and device options of the command, on a fake device.
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/fake_system.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class ToolDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    const BundleBytes bytes = MakeTinyBundle(TinyBundle());
    bundle_ = (folder_ / "tiny.arn").string();
    WriteFile(bundle_, bytes.data(), bytes.size());
    fake_.Zone(0, "cpu-big", "48500");
    fake_.Zone(1, "gone", "");
    fake_.Write("class/hwmon/hwmon0/name", "ina226\n");
    fake_.Write("class/hwmon/hwmon0/power1_input", 5000000);
  }

  ProcessResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--system-root", fake_.root()});
    return RunArenite(arguments);
  }
  nlohmann::json RunJson(std::vector<std::string> arguments) {
    const ProcessResult result = Run(std::move(arguments));
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }

  TempFolder folder_;
  FakeSystem fake_;
  std::string bundle_;
};

TEST_F(ToolDeviceTest, Run_Stats_AreInJsonAndInTheReport) {
  const std::vector<std::string> arguments = {
      "run", bundle_,        "--prompt-ids", "3,1,4", "--max-tokens",
      "8",   "--ignore-eos", "--threads",    "2",     "--stats"};
  std::vector<std::string> as_json = arguments;
  as_json.push_back("--json");
  const nlohmann::json device = RunJson(as_json)["device"];
  EXPECT_EQ(48.5, device["temperature_c"]);
  ASSERT_EQ(2u, device["zones"].size());
  EXPECT_EQ("cpu-big", device["zones"][0]["name"]);
  EXPECT_TRUE(device["zones"][1]["temperature_c"].is_null());
  EXPECT_EQ("board-power", device["energy_source"]);
  EXPECT_EQ("ina226", device["energy_name"]);
  EXPECT_EQ(2, device["cpus"]["threads"]);
  EXPECT_EQ(true, device["cpus"]["as_wanted"]);
  EXPECT_GT(device["weight_bytes_read"], 0);
  EXPECT_GT(device["kv_bytes_read"], 0);
  EXPECT_TRUE(device["headroom"].is_null());

  const ProcessResult result = Run(arguments);
  EXPECT_EQ(0, result.exit_code);
  for (const char* words : {"48.5 degrees (cpu-big, hottest of 2 zones)", "board-power, ina226",
                            "2 threads on ", "placed by the system", "read      weights "}) {
    EXPECT_NE(std::string::npos, result.err.find(words)) << words << "\n" << result.err;
  }
}

TEST_F(ToolDeviceTest, Run_WithoutStats_SaysNothingOfIt) {
  const nlohmann::json json =
      RunJson({"run", bundle_, "--prompt-ids", "3", "--max-tokens", "2", "--json"});
  EXPECT_FALSE(json.contains("device"));
}

TEST_F(ToolDeviceTest, Bench_Stats_AreThoseOfTheRuns) {
  const nlohmann::json json =
      RunJson({"bench", bundle_, "-p", "8", "-n", "32", "-r", "1", "-t", "1", "--cpus", "all",
               "--seconds", "0.3", "--max-tokens-per-s", "200", "--stats", "--json"});
  EXPECT_EQ("all", json["cpus"]);
  EXPECT_GT(json["peak_rss"], 0);
  ASSERT_EQ(2u, json["results"].size());
  const nlohmann::json& decode = json["results"][1];
  EXPECT_EQ("decode", decode["test"]);
  EXPECT_LE(decode["tokens_per_s"], 220);
  EXPECT_GT(decode["device"]["paced_s"], 0);
  // 5 W over the time of a token.
  EXPECT_NEAR(5.0 / decode["tokens_per_s"].get<double>(), decode["joules_per_token"].get<double>(),
              0.003);
  ASSERT_GE(decode["runs"].size(), 2u);
  double last = 0;
  for (const nlohmann::json& run : decode["runs"]) {
    EXPECT_GT(run["at_s"], last);
    EXPECT_EQ(48.5, run["temperature_c"]);
    last = run["at_s"];
  }
}

TEST_F(ToolDeviceTest, Heat_OverTheLimit_IsSleptOff) {
  const nlohmann::json json = RunJson({"run", bundle_, "--prompt-ids", "3,1,4", "--max-tokens", "8",
                                       "--ignore-eos", "--thermal-limit", "45", "--thermal-zone",
                                       "cpu", "--thermal-duty", "20", "--stats", "--json"});
  EXPECT_GT(json["device"]["cooled_s"], 0);
  EXPECT_EQ(1u, json["device"]["zones"].size());
}

TEST_F(ToolDeviceTest, Options_ThatCannotBe_AreRefused) {
  const auto refused = [&](std::vector<std::string> options, const char* words) {
    options.insert(options.begin(), {"run", bundle_, "--prompt-ids", "3"});
    const ProcessResult result = Run(options);
    EXPECT_NE(0, result.exit_code) << words;
    EXPECT_NE(std::string::npos, result.err.find(words)) << result.err;
  };
  for (const char* cpus :
       {"big", "4-", "-4", "7-4", "0,,1", "0,", "64", "99999999999", "1;2", ""}) {
    refused({"--cpus", cpus}, "--cpus");
  }
  refused({"--cpus", "63"}, "cpu_mask");
  refused({"--cpus", "performance", "--backend", "reference"}, "reference");
  refused({"--thermal-limit", "45", "--thermal-zone", "gpu"}, "'gpu'");
  refused({"--thermal-limit", "5000"}, "--thermal-limit");
  refused({"--thermal-limit", "1"}, "thermal_limit_mc");
  refused({"--heat-limit=5000"}, "--thermal-limit");  // the name in version 0.1
  refused({"--max-tokens-per-s", "-1"}, "max_tokens_per_s");
}

// A software driver is reported before anything is compiled, and used only if named. Its pipelines
// and what was measured of its kernels are in the user's cache folder.
TEST_F(ToolDeviceTest, Vulkan_DriverInSoftware_IsTakenByNameOnlyAndRemembered) {
  const std::filesystem::path cache = folder_ / "cache";
  std::filesystem::create_directories(cache);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"env", "XDG_CACHE_HOME=" + cache.string()});
    return RunProcess(more);
  };
  const auto command = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "run",       bundle_,  "--prompt-ids",   "3,1",   "--max-tokens", "2",
        "--backend", "vulkan", "--trust-device", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return AreniteCommand(arguments);
  };
  const ProcessResult refused = run(command({}));
  if (refused.err.find("is a software device") == std::string::npos) {
    GTEST_SKIP() << "no software device alone: " << refused.err;
  }
  EXPECT_EQ(1, refused.exit_code);
  EXPECT_NE(std::string::npos, refused.err.find("select it by name")) << refused.err;

  const auto kept = [&](const char* suffix) {
    size_t n = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache)) {
      n += entry.path().extension() == suffix ? 1 : 0;
    }
    return n;
  };
  const auto how_chosen = [](const ProcessResult& result) {
    const auto json = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_EQ("", json["backend_quirks"]) << "a software driver has no quirks";
    const std::string kernels = json["backend_kernels"];
    return kernels.substr(kernels.rfind(';') + 2);
  };
  const ProcessResult none = run(command({"--device", "0", "--device-folder", "none"}));
  EXPECT_EQ(0, none.exit_code) << none.err;
  EXPECT_EQ("fixed", how_chosen(none));
  EXPECT_EQ(0u, kept(".pipelines"));
  EXPECT_EQ(0u, kept(".tuning"));
  const ProcessResult taken = run(command({"--device", "0"}));
  EXPECT_EQ(0, taken.exit_code) << taken.err;
  EXPECT_EQ(0u, how_chosen(taken).find("measured"));
  EXPECT_EQ(1u, kept(".pipelines"));
  EXPECT_EQ(1u, kept(".tuning"));
}

}  // namespace
}  // namespace arn::test
