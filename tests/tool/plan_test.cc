// arenite plan and the session options, on bundles with full, windowed and chunked layers.
#include <cstring>
#include <tuple>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_bundle.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

using Json = nlohmann::json;

class PlanTest : public testing::Test {
 protected:
  // Vocab 61; two full layers, three with a window of 40, one with chunks of 64.
  PlanTest() : bundle_((folder_ / "tiny.arn").string()) { Write({}); }

  void Write(TinyBundle options) {
    options.max_context = max_context_;
    options.layer_kinds = {{}, {40}, {40}, {}, {40}, {0, 64}};
    options.layers = 6;
    const BundleBytes bytes = MakeTinyBundle(options);
    WriteFile(bundle_, bytes.data(), bytes.size());
  }

  ProcessResult Run(const std::string& command, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {command, bundle_});
    return RunArenite(arguments);
  }
  std::string Out(const std::string& command, const std::vector<std::string>& arguments) {
    const ProcessResult result = Run(command, arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return result.out;
  }
  Json Plan(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const std::string out = Out("plan", arguments);
    Json json = Json::parse(out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << out;
    return json;
  }
  void ExpectError(const std::string& command, const std::vector<std::string>& arguments,
                   int exit_code, const std::string& words) {
    const ProcessResult result = Run(command, arguments);
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(exit_code, result.exit_code);
    EXPECT_EQ("", result.out);
    EXPECT_EQ(0u, result.err.find("arenite: error: ")) << result.err;
    EXPECT_NE(std::string::npos, result.err.find(words)) << result.err;
  }

  static constexpr uint32_t max_context_ = 1000;
  TempFolder folder_;
  std::string bundle_;
};

TEST_F(PlanTest, Groups_HaveThePagesOfTheirWindows) {
  const Json plan = Plan({"--context", "512", "--kv", "int8", "--prefill-chunk", "16"});
  const Json& groups = plan["groups"];
  ASSERT_EQ(3u, groups.size());
  const uint64_t block = 2 * 32 * 8, scales = 2 * 32 * 4;  // 2 KV heads of 8, pages of 32
  const uint64_t layer = 2 * block + 2 * scales;
  struct Wanted {
    uint32_t layers, window, chunk, pages;
  };
  // ceil((window - 1 + chunk - 1) / 32) + 1 with a prefill chunk of 16.
  const Wanted wanted[] = {{2, 0, 0, 16}, {3, 40, 0, 3}, {1, 0, 64, 4}};
  for (size_t g = 0; g < 3; ++g) {
    SCOPED_TRACE(g);
    EXPECT_EQ(wanted[g].layers, groups[g]["layers"]);
    EXPECT_EQ(2u, groups[g]["kv_heads"]);
    EXPECT_EQ(8u, groups[g]["head_dim"]);
    EXPECT_EQ(wanted[g].window, groups[g]["window"]);
    EXPECT_EQ(wanted[g].chunk, groups[g]["chunk"]);
    EXPECT_EQ(32u, groups[g]["page_tokens"]);
    EXPECT_EQ(wanted[g].pages, groups[g]["pages"]);
    EXPECT_EQ(wanted[g].layers * layer, groups[g]["page_bytes"]);
    EXPECT_EQ(wanted[g].layers * layer * wanted[g].pages, groups[g]["pool_bytes"]);
    EXPECT_EQ(wanted[g].pages * 32, groups[g]["tokens"]);
  }
  const std::string table = Out("plan", {"--context", "512"});
  for (const char* words : {"kv heads", "window 40", "chunk 64", "pool bytes"}) {
    EXPECT_NE(std::string::npos, table.find(words)) << table;
  }
}

TEST_F(PlanTest, Sequences_SharePools) {
  const Json plan = Plan({"--context", "256", "--sequences", "4", "--kv-tokens", "320"});
  EXPECT_EQ(4, plan["sequences"]);
  EXPECT_EQ(320, plan["kv_tokens"]);
  EXPECT_EQ(10, plan["groups"][0]["pages"]);
  EXPECT_EQ(8, plan["groups"][0]["sequence_pages"]);
  const Json all = Plan({"--context", "256", "--sequences", "4"});
  EXPECT_EQ(32, all["groups"][0]["pages"]);
}

TEST_F(PlanTest, Int4_HasQuantisedPages) {
  const std::vector<std::string> options = {
      "--context",       "512", "--kv",          "int4", "--kv-values", "int2",
      "--prefill-chunk", "16",  "--kv-residual", "64"};
  const Json plan = Plan(options);
  const Json& group = plan["groups"][0];
  // At most 64 tokens and a chunk of 16 are active; 512 - 64 can be quantised.
  EXPECT_EQ(3, group["pages"]);
  EXPECT_EQ(7, group["quantised"]["pages"]);
  EXPECT_EQ(64, group["quantised"]["residual"]);
  // 2 KV heads of 8, 64 tokens, 2 layers: 4-bit keys with a range per channel, 2-bit values with a
  // range per token; a range is two f16.
  EXPECT_EQ(2 * (2 * 64 * 4 + 2 * 64 * 2 + 2 * 8 * 4 + 2 * 64 * 4),
            group["quantised"]["page_bytes"].get<int>());
  EXPECT_EQ(7 * group["quantised"]["page_bytes"].get<int>(), group["quantised"]["pool_bytes"]);
  // A window of 40 is within the residual.
  EXPECT_FALSE(plan["groups"][1].contains("quantised"));
  EXPECT_NE(std::string::npos, Out("plan", options).find("quantised once 64 tokens old"));
  ExpectError("plan", {"--kv", "int8", "--kv-residual", "64"}, 1, "kv_residual 64");
  ExpectError("plan", {"--kv", "int4", "--kv-group", "24"}, 1, "--kv-group is 24");
  ExpectError("plan", {"--kv-values", "int5"}, 2, "int5");
}

TEST_F(PlanTest, NoCache_AndShift_ArePlanned) {
  const Json plan = Plan({"--context", "256"});
  EXPECT_LT(plan["activations"], Plan({"--context", "256", "--no-cache"})["activations"]);
  EXPECT_EQ(plan["kv"], Plan({"--context", "256", "--overflow", "shift", "--pinned", "10"})["kv"]);
}

TEST_F(PlanTest, Fit_IsTheLargestContextThatFits) {
  for (const char* size : {"420K", "440000", "1M"}) {
    SCOPED_TRACE(size);
    const Json fits = Plan({"--fit", size, "--threads", "1"});
    const uint64_t bytes = fits["fit"];
    ASSERT_EQ(5u, fits["fits"].size());
    for (const Json& fit : fits["fits"]) {
      const std::string kv = fit["kv"];
      const auto total = [&](uint32_t context) -> uint64_t {
        return Plan({"--context", std::to_string(context), "--kv", kv, "--threads", "1"})["total"];
      };
      const uint32_t page = kv == "int4" ? 64 : 32;
      const uint32_t largest = 1000 / page * page;
      EXPECT_EQ(largest, fit["largest_context"]);
      EXPECT_EQ(total(page), fit["smallest_total"]);
      const uint32_t context = fit["context"];
      ASSERT_GT(context, 0u);
      EXPECT_EQ(0u, context % page);
      EXPECT_EQ(total(context), fit["total"]);
      EXPECT_LE(total(context), bytes);
      if (context < largest) {
        EXPECT_GT(total(context + page), bytes);
      }
    }
  }
  const Json one = Plan({"--fit", "1G", "--kv", "f16"});
  ASSERT_EQ(1u, one["fits"].size());
  EXPECT_EQ(uint64_t{1} << 30, one["fit"]);
  EXPECT_EQ(992, one["fits"][0]["context"]);
  const std::pair<const char*, uint64_t> sizes[] = {
      {"1073741824", 1u << 30}, {"1GiB", 1u << 30},  {"1g", 1u << 30},         {"1GB", 1000000000},
      {"900MB", 900000000},     {"900M", 943718400}, {"2000000kB", 2000000000}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_EQ(bytes, Plan({"--fit", text, "--kv", "f16"})["fit"]) << text;
  }
  EXPECT_NE(std::string::npos, Out("plan", {"--fit", "1G"}).find("the model's maximum"));
}

TEST_F(PlanTest, Fit_WithShift_BeginsWhereShiftingCan) {
  // Pages of 32 and chunks of 64: 64 pinned tokens, and twice 64 to evict from.
  const Json fits = Plan({"--fit", "1G", "--overflow", "shift", "--pinned", "33"});
  EXPECT_EQ(192, fits["fits"][0]["smallest_context"]);
  ExpectError("plan", {"--fit", "1G", "--overflow", "shift", "--pinned", "990"}, 1,
              "pinned_tokens 990");
}

TEST_F(PlanTest, Fit_ThatIsTooSmall_SaysWhatIsNeeded) {
  const Json plan = Plan({"--context", "32", "--kv", "int8"});
  const uint64_t needed = plan["total"];
  ExpectError("plan", {"--fit", "1K"}, 1,
              "even 32 tokens take " + std::to_string(needed) + " bytes, " +
                  std::to_string(needed - 1024) + " more");
  // int8 fits and f32 does not: each row has its own result.
  const Json fits = Plan({"--fit", std::to_string(needed)});
  EXPECT_EQ(32, fits["fits"][2]["context"]);
  EXPECT_EQ(needed, fits["fits"][2]["total"]);
}

TEST_F(PlanTest, BadValues_AreNamed) {
  ExpectError("plan", {"--fit", "300X"}, 1, "'300X'");
  ExpectError("plan", {"--fit", "300MX"}, 1, "'300MX'");
  ExpectError("plan", {"--fit", "300B"}, 1, "'300B'");
  ExpectError("plan", {"--fit", ""}, 1, "--fit");
  ExpectError("plan", {"--fit", "-1"}, 1, "'-1'");
  ExpectError("plan", {"--fit", "99999999999G"}, 1, "'99999999999G'");
  ExpectError("plan", {"--fit", "1M", "--context", "32"}, 2, "--context");
  ExpectError("plan", {"--used", "3"}, 2, "--svg");
  ExpectError("plan", {"--svg", (folder_ / "a.svg").string(), "--used", "1001"}, 1, "--used 1001");
  ExpectError("plan", {"--svg", "/no/such/folder/a.svg"}, 1, "/no/such/folder/a.svg");
  ExpectError("plan", {"--sequences", "0"}, 2, "--sequences");
  ExpectError("plan", {"--sequences", "1025"}, 2, "--sequences");
  ExpectError("plan", {"--kv-tokens", "-3"}, 2, "--kv-tokens");
  ExpectError("plan", {"--kv-tokens", "3"}, 1, "--kv-tokens is 3");
  ExpectError("plan", {"--overflow", "grow"}, 2, "--overflow");
  ExpectError("plan", {"--pinned", "7"}, 1, "--pinned 7");
  ExpectError("run", {"--prompt-ids", "1", "--pinned", "7"}, 1, "--pinned 7");
}

TEST_F(PlanTest, Run_Overflow_DoesWhatIsAsked) {
  const std::vector<std::string> common = {"--prompt-ids", "1,2,3,4",   "--max-tokens", "300",
                                           "--ignore-eos", "--context", "192",          "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  EXPECT_EQ("context", Json::parse(Out("run", with({})))["finish"]);
  const Json shifted = Json::parse(Out("run", with({"--overflow", "shift", "--pinned", "4"})));
  EXPECT_EQ("length", shifted["finish"]);
  EXPECT_EQ(300u, shifted["ids"].size());
  ExpectError("run", with({"--overflow", "error"}), 1, "context");
}

TEST_F(PlanTest, NoCache_GivesTheSameAnswers) {
  const std::string with = (folder_ / "with.f32").string();
  const std::string without = (folder_ / "without.f32").string();
  const std::vector<std::string> prompt = {"--prompt-ids", "5,9,1,30,2,60,7", "--kv", "f32"};
  for (const auto& [out, flag] : {std::pair{with, ""}, std::pair{without, "--no-cache"}}) {
    std::vector<std::string> arguments = prompt;
    arguments.insert(arguments.end(), {"--out", out});
    if (flag[0] != '\0') arguments.push_back(flag);
    Out("logits", arguments);
  }
  const std::vector<uint8_t> a = ReadFile(with), b = ReadFile(without);
  ASSERT_EQ(7u * 61 * sizeof(float), a.size());
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size() / sizeof(float); ++i) {
    float x = 0, y = 0;
    std::memcpy(&x, a.data() + i * sizeof(float), sizeof x);
    std::memcpy(&y, b.data() + i * sizeof(float), sizeof y);
    ASSERT_NEAR(static_cast<double>(x), static_cast<double>(y), 1e-4) << i;
  }
  EXPECT_NE(std::string::npos,
            Out("bench", {"-p", "8", "-n", "2", "-r", "1", "--no-cache"}).find("| decode"));
}

TEST_F(PlanTest, Bench_Sequences_ShareTheReadingOfWeights) {
  const std::string out = Out(
      "bench", {"-p", "0", "-n", "4", "-d", "16", "-r", "1", "--json", "--sequences", "1,4,40"});
  const Json results = Json::parse(out, nullptr, /*allow_exceptions=*/false)["results"];
  ASSERT_EQ(3u, results.size());
  double bytes[3];
  const int sequences[] = {1, 4, 40};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sequences[i], results[i]["sequences"]);
    bytes[i] = results[i]["bytes_per_token"].get<double>();
  }
  const auto [alone, four, forty] = bytes;
  // bytes = weights / n + kv, so bytes are linear in 1 / n.
  EXPECT_GT(alone, four);
  EXPECT_NEAR((alone - four) / (1.0 - 1.0 / 4), (alone - forty) / (1.0 - 1.0 / 40), 1);
  ExpectError("bench", {"--sequences", "0"}, 1, "--sequences 0: expected 1 to 1024");
  ExpectError("bench", {"--sequences", "4,1025"}, 1, "--sequences 1025: expected 1 to 1024");
}

class PictureTest : public PlanTest {
 protected:
  // Returns the picture as parsed by check_svg.py.
  Json Draw(std::vector<std::string> arguments) {
    const std::string path = (folder_ / "arena.svg").string();
    arguments.insert(arguments.end(), {"--svg", path});
    Out("plan", arguments);
    const ProcessResult checked =
        RunProcess({ARN_PYTHON, "-B", SourcePath("tests/tool/check_svg.py").string(), path});
    EXPECT_EQ(0, checked.exit_code) << checked.err;
    return Json::parse(checked.out, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(PictureTest, Regions_HaveTheirBytes) {
  const Json plan = Plan({"--context", "512"});
  const Json picture = Draw({"--context", "512"});
  double drawn = 0;
  for (const char* region : {"weights", "constants", "io", "activations", "kv"}) {
    const Json& texts = picture["regions"][region]["texts"];
    EXPECT_EQ(region, texts[0]);
    const std::string bytes = std::to_string(plan[region].get<uint64_t>()) + " bytes";
    EXPECT_EQ(0u, texts[1].get<std::string>().find(bytes)) << texts;
    const double width = picture["regions"][region]["width"];
    EXPECT_GE(width, 149);
    if (std::string(region) != "weights") drawn += width;
  }
  EXPECT_NEAR(1140, drawn, 0.1);
}

TEST_F(PictureTest, Pages_AreUsedAsTheTokensNeed) {
  const std::vector<std::string> options = {"--context", "512", "--prefill-chunk", "16", "--used"};
  const auto used = [&](const char* tokens) {
    std::vector<std::string> arguments = options;
    arguments.push_back(tokens);
    std::vector<uint32_t> counts;
    const Json picture = Draw(arguments);
    for (const Json& group : picture["groups"]) {
      EXPECT_EQ(group["cells"], group["used"].get<uint32_t>() + group["free"].get<uint32_t>());
      counts.push_back(group["used"]);
    }
    return counts;
  };
  EXPECT_EQ((std::vector<uint32_t>{0, 0, 0}), used("0"));
  EXPECT_EQ((std::vector<uint32_t>{1, 1, 1}), used("1"));
  EXPECT_EQ((std::vector<uint32_t>{3, 3, 3}), used("96"));
  EXPECT_EQ((std::vector<uint32_t>{4, 3, 4}), used("97"));
  EXPECT_EQ((std::vector<uint32_t>{16, 3, 4}), used("512"));
  // The default is half of the context.
  EXPECT_EQ(8, Draw({"--context", "512", "--prefill-chunk", "16"})["groups"][0]["used"]);
}

TEST_F(PictureTest, QuantisedPages_AreDrawnToo) {
  const Json group = Draw({"--context", "512", "--prefill-chunk", "16", "--kv", "int4",
                           "--kv-residual", "64", "--used", "200"})["groups"][0];
  // 200 tokens are 4 pages; the first 136 tokens fill 2, which are quantised.
  EXPECT_EQ(3 + 7, group["cells"]);
  EXPECT_EQ(4, group["used"]);
  EXPECT_NE(std::string::npos, group["texts"][1].get<std::string>().find("; 2 used;"));
  EXPECT_NE(std::string::npos, group["texts"][2].get<std::string>().find("; 2 used;"));
}

TEST_F(PictureTest, ManyPages_AreCellsOfSeveral) {
  // 64 * 16 pages, 4 per cell; 100 tokens are 4 pages, 1 cell; 130 are 5, 1.25 cells.
  const std::vector<std::string> options = {"--context", "512", "--sequences", "64", "--used"};
  for (const auto& [tokens, used, free] :
       {std::tuple{"100", 1u, 255u}, std::tuple{"130", 2u, 255u}}) {
    std::vector<std::string> arguments = options;
    arguments.push_back(tokens);
    const Json group = Draw(arguments)["groups"][0];
    EXPECT_EQ(256, group["cells"]);
    EXPECT_EQ(used, group["used"]);
    EXPECT_EQ(free, group["free"]);
    EXPECT_NE(std::string::npos, group["texts"][1].get<std::string>().find("a cell is 4 pages"));
  }
}

}  // namespace
}  // namespace arn::test
