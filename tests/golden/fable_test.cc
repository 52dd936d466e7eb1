// The trained model in models/ against transformers, token by token (models/fable/expected.json).
// tests/tool/eval_test.cc checks its perplexity.
#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class FableTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    expected_ = nlohmann::json::parse(ReadText(SourcePath("models/fable/expected.json")));
  }

  // Returns null after a test failure.
  ModelPtr Model(const char* weights) {
    const auto bundle = folder_ / (std::string(weights) + ".arn");
    if (!Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", weights})) return {};
    return OpenModel(bundle);
  }

  void ExpectGreedy(const arn_model* model, const nlohmann::json& prompt,
                    uint32_t backend = ARN_BACKEND_CPU) {
    SCOPED_TRACE(prompt["input"]);
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    const SessionPtr session = NewSession(model, options);
    ASSERT_NE(nullptr, session);
    const std::vector<int32_t> ids = prompt["ids_used"];
    const std::vector<int32_t> greedy = prompt["greedy_ids"];
    const auto n = static_cast<uint32_t>(greedy.size());
    const nlohmann::json& stops_after = prompt["greedy_stops_after"];
    const Generated ended = GenerateGreedy(session.get(), ids, n, /*ignore_eos=*/false);
    EXPECT_EQ(prompt["greedy_text"], ended.text);
    if (stops_after.is_null()) {
      EXPECT_EQ(greedy, ended.ids);
      EXPECT_EQ(uint32_t{ARN_FINISH_LENGTH}, ended.finish);
      return;
    }
    EXPECT_EQ(uint32_t{ARN_FINISH_EOS}, ended.finish);
    EXPECT_EQ(stops_after.get<size_t>(), ended.ids.size() + 1);
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    EXPECT_EQ(greedy, GenerateGreedy(session.get(), ids, n, /*ignore_eos=*/true).ids);
  }

  TempFolder folder_;
  nlohmann::json expected_;
};

TEST_F(FableTest, F32_GreedyIdsAndText_AreTheExpected) {
  const ModelPtr model = Model("f32");
  ASSERT_NE(nullptr, model);
  for (const nlohmann::json& prompt : expected_["prompts"]) ExpectGreedy(model.get(), prompt);
}

// Scalar kernels are slow: runs one continuation to max length and one to its end token.
TEST_F(FableTest, Reference_GreedyIdsAndText_AreTheExpected) {
  const ModelPtr model = Model("f32");
  ASSERT_NE(nullptr, model);
  bool has_length = false, has_end = false;
  for (const nlohmann::json& prompt : expected_["prompts"]) {
    bool& has = prompt["greedy_stops_after"].is_null() ? has_length : has_end;
    if (!has) ExpectGreedy(model.get(), prompt, ARN_BACKEND_REFERENCE);
    has = true;
  }
  EXPECT_TRUE(has_length && has_end);
}

TEST_F(FableTest, F32_LogitsAfterThePrompt_AreTheExpected) {
  const ModelPtr model = Model("f32");
  ASSERT_NE(nullptr, model);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  const SessionPtr session = NewSession(model.get(), options);
  ASSERT_NE(nullptr, session);
  for (const nlohmann::json& prompt : expected_["prompts"]) {
    const std::vector<int32_t> ids = prompt["ids_used"];
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    const float* logits = nullptr;
    ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
    for (const nlohmann::json& top : prompt["top5"]) {
      EXPECT_NEAR(top["logit"].get<double>(), static_cast<double>(logits[top["id"].get<int>()]),
                  2e-4)
          << prompt["input"] << " " << top["token"];
    }
  }
}

TEST_F(FableTest, Tokenizer_GivesTheExpectedIds) {
  const ModelPtr model = Model("f32");
  ASSERT_NE(nullptr, model);
  for (const nlohmann::json& prompt : expected_["prompts"]) {
    const bool is_chat = prompt["chat"];
    const std::vector<int32_t> wanted = prompt[is_chat ? "ids_chat" : "ids_plain"];
    const std::string text = prompt["text"];
    EXPECT_EQ(wanted, Tokenize(model.get(), text, ARN_TOKENIZE_DEFAULT)) << text;
    EXPECT_EQ(text, Detokenize(model.get(), wanted, ARN_DETOKENIZE_DEFAULT));
  }
}

}  // namespace
}  // namespace arn::test
