// arenite eval on the model in models/: transformers' perplexity, and the cost of quantised weights
// and caches.
#include <cmath>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class EvalTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    expected_ = nlohmann::json::parse(ReadText(SourcePath("models/fable/expected.json")));
  }

  // Returns the report of `arenite eval` with these weights. Expects success.
  nlohmann::json Eval(const std::string& weights, std::vector<std::string> arguments) {
    const std::string bundle = (folder_ / (weights + ".arn")).string();
    EXPECT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", weights}));
    arguments.insert(arguments.begin(), {"eval", bundle, "--json"});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    const auto json = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << result.out;
    return json;
  }
  nlohmann::json EvalHeldOut(const std::string& weights, const std::string& kv) {
    return Eval(weights, {"--file", SourcePath("models/fable/heldout.txt").string(), "--kv", kv,
                          "--context", "512"});
  }

  TempFolder folder_;
  nlohmann::json expected_;
};

TEST_F(EvalTest, Eval_GivesTheExpectedPerplexity) {
  const nlohmann::json json = EvalHeldOut("f32", "f32");
  EXPECT_EQ(expected_["perplexity"]["tokens"], json["tokens"]);
  EXPECT_EQ(expected_["perplexity"]["predicted"], json["predicted"]);
  EXPECT_NEAR(expected_["perplexity"]["mean_nll"].get<double>(), json["nll"].get<double>(), 1e-4);
  EXPECT_NEAR(expected_["perplexity"]["perplexity"].get<double>(), json["perplexity"].get<double>(),
              1e-3);
}

TEST_F(EvalTest, Eval_QuantisedWeights_CostLittle) {
  const double exact = expected_["perplexity"]["mean_nll"];
  const double int8 = EvalHeldOut("int8", "int8")["nll"];
  EXPECT_LT(std::exp(int8 - exact), 1.02);
  EXPECT_NE(exact, int8);
  const double int4 = EvalHeldOut("int4", "int8")["nll"];
  EXPECT_LT(std::exp(int4 - exact), 1.10);
  EXPECT_NE(int8, int4);
}

TEST_F(EvalTest, Eval_AgainstAnotherKvType_SaysWhatItCosts) {
  // One window is enough.
  const std::string text = (folder_ / "part.txt").string();
  WriteFile(text, ReadText(SourcePath("models/fable/heldout.txt")).substr(0, 1500));
  const auto kl = [&](std::vector<std::string> kv) {
    std::vector<std::string> arguments = {"--file",          text, "--against-kv", "f32",
                                          "--prefill-chunk", "16"};
    arguments.insert(arguments.end(), kv.begin(), kv.end());
    const nlohmann::json json = Eval("f32", arguments);
    EXPECT_GE(json["kl_p99"].get<double>(), json["kl"].get<double>());
    EXPECT_GE(json["kl_most"].get<double>(), json["kl_p99"].get<double>());
    EXPECT_GT(json["same_top"].get<double>(), 0.9);
    return json["kl"].get<double>();
  };
  EXPECT_EQ(0.0, kl({"--kv", "f32"}));
  const double int8 = kl({"--kv", "int8"});
  const double int4 = kl({"--kv", "int4", "--kv-residual", "32"});
  const double int2 = kl({"--kv", "int2", "--kv-residual", "32"});
  EXPECT_GT(int8, 0.0);
  EXPECT_LT(int8, 1e-3);
  EXPECT_LT(int8, int4);
  EXPECT_LT(int4, 2e-3);
  EXPECT_LT(int4, int2);
  EXPECT_LT(int2, 5e-2);
}

}  // namespace
}  // namespace arn::test
