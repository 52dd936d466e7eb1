// Guesses of an assistant, which reads the session's own keys and values, change nothing but the
// time, whatever becomes of the text: it is continued, rewound, forked, shifted or restored.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/head_support.h"
#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"

namespace arn::test {
namespace {

BundleBytes WithAssistant(TinyMtp mtp, const std::vector<TinyLayer>& layers) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = kContext;
  bundle.weights = DType::kF16;
  bundle.layer_kinds = layers;
  bundle.qk_norm = true;
  bundle.mtp = mtp;
  bundle.is_assistant = true;
  return MakeTinyBundle(bundle);
}

class AssistantTest : public testing::TestWithParam<Shape> {};

TEST_P(AssistantTest, Greedy_TheSameTokens_AndARightOneIsAlwaysRight) {
  for (const TinyMtp mtp : {TinyMtp::kRandom, TinyMtp::kRight}) {
    const BundleBytes bytes = WithAssistant(mtp, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    ASSERT_NE(nullptr, model);
    for (const uint32_t kv : {ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2}) {
      SCOPED_TRACE(std::string(mtp == TinyMtp::kRight ? "right, " : "random, ") +
                   arn_kv_type_name(kv));
      const SessionPtr plain = NewSession(model.get(), Options(kv, ARN_SPECULATE_NONE));
      const SessionPtr guessing = NewSession(model.get(), Options(kv, ARN_SPECULATE_MTP));
      ExpectSameTexts(plain.get(), guessing.get(), 3);
      if (HasFailure()) return;
      if (mtp == TinyMtp::kRandom) {
        EXPECT_LT(AcceptedShare(guessing.get()), 0.9);
      } else {
        EXPECT_EQ(1.0, AcceptedShare(guessing.get()));
        const arn_session_stats_data stats = Stats(guessing.get());
        EXPECT_GT(stats.guesses_accepted, stats.decode_tokens / 2);  // several tokens a run
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, AssistantTest,
                         testing::ValuesIn(ForThisCpu(Join({Shapes(), WidthShapes()}))), ShapeName);

class Assistant : public testing::Test {
 protected:
  const BundleBytes random_bytes_ = WithAssistant(TinyMtp::kRandom, {{}, {9}, {}}),
                    right_bytes_ = WithAssistant(TinyMtp::kRight, {{}, {9}, {}});
  const ModelPtr random_ = OpenBytes(random_bytes_), right_ = OpenBytes(right_bytes_);
};

TEST_F(Assistant, Sampling_TheSameTokensForTheSameSeed) {
  ExpectSameSamples(right_.get(), /*same_pages=*/true);
}

TEST_F(Assistant, Rows_AreThoseOfTheTokensBefore) {
  TinyBundle bundle;
  bundle.vocab = bundle.hidden = 64;
  bundle.max_context = kContext;
  bundle.weights = DType::kF16;
  bundle.mtp = TinyMtp::kRightByRow;
  bundle.is_assistant = true;
  bundle.layer_kinds = {{}, {}};
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  ExpectRowsOfTheTokensBefore(model.get(), HeadOptions(true));
}

// It has nothing to read before its first guess, however the prompt came.
TEST_F(Assistant, PromptInParts_TheSameGuesses) {
  const std::vector<arn_session_stats_data> stats = StatsOfPromptInParts(random_.get());
  for (const arn_session_stats_data& s : stats) {
    EXPECT_EQ(stats[0].guesses_accepted, s.guesses_accepted);
  }
}

TEST_F(Assistant, RewoundForkedAndReset_TheSameTokensAndRightGuesses) {
  const BundleBytes bytes = WithAssistant(TinyMtp::kRight, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  ExpectSameTextsAndRightGuesses(model.get(), 0);
}

TEST_F(Assistant, Restored_TheSameTokensAndRightGuesses) {
  ExpectRightGuessesWhenRestored(right_.get(), HeadOptions(true));
}

TEST_F(Assistant, FullContext_TheSameTokens) {
  for (const arn_model* model : {random_.get(), right_.get()}) ExpectSameTextsInAFullContext(model);
}

TEST_F(Assistant, Cancel_LosesNothing) { ExpectSameTextWhenCancelled(random_.get()); }

TEST_F(Assistant, Auto_HasItBehindTheNgrams) {
  const SessionPtr plain = NewSession(random_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE)),
                   guessing = NewSession(random_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_AUTO));
  ExpectSameTexts(plain.get(), guessing.get(), 3);
  EXPECT_NE(0u, Stats(guessing.get()).draft_ns);
}

// It has activations and logits, and no keys and values.
TEST_F(Assistant, Plan_HasAllOfIt) {
  const arn_session_options none = Options(ARN_KV_INT8, ARN_SPECULATE_NONE);
  arn_session_options with = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
  arn_memory_plan plain = ARN_MEMORY_PLAN_INIT, plan = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(random_.get(), &none, nullptr, 0, &plain));
  ASSERT_EQ(ARN_OK, arn_session_plan(random_.get(), &with, nullptr, 0, &plan));
  EXPECT_EQ(plain.weights_bytes, plan.weights_bytes);
  EXPECT_EQ(plain.kv_bytes, plan.kv_bytes);
  EXPECT_GT(plan.draft_bytes, (16 + 1) * 32 * 4 + kVocab * 4u);
  EXPECT_GT(plan.draft_weights_bytes, 2u * (2 * 20 * 32 + 20 * 32 + 2 * kVocab * 20));
  EXPECT_LT(plan.draft_weights_bytes, plan.weights_bytes);
  EXPECT_GE(plan.speculation_bytes, plan.draft_bytes + 15 * kVocab * 4);
  // Of a longer context only the ids of its session are more.
  arn_memory_plan shorter = ARN_MEMORY_PLAN_INIT;
  with.context_tokens = kContext / 2;
  ASSERT_EQ(ARN_OK, arn_session_plan(random_.get(), &with, nullptr, 0, &shorter));
  EXPECT_LE(plan.draft_bytes, shorter.draft_bytes + 64 * kContext);
}

TEST_F(Assistant, PagesInAFile_AreRefusedByName) {
  arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
  const std::string path = testing::TempDir() + "assistant.kv";
  options.kv_file = path.c_str();
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[256] = "";
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(random_.get(), &options, error, sizeof error, &plan));
  EXPECT_NE(std::string::npos, std::string(error).find("kv_file")) << error;
  options.speculation = ARN_SPECULATE_AUTO;
  EXPECT_EQ(ARN_OK, arn_session_plan(random_.get(), &options, error, sizeof error, &plan));
  EXPECT_EQ(0u, plan.draft_bytes);
}

}  // namespace
}  // namespace arn::test
