// Guesses of the model's own head change nothing but the time, whatever becomes of the text: it is
// read in chunks, continued, rewound, forked, shifted or restored.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/head_support.h"
#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"

namespace arn::test {
namespace {

BundleBytes WithHead(TinyMtp mtp, const std::vector<TinyLayer>& layers, uint64_t seed = 1) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = kContext;
  bundle.weights = DType::kF16;
  bundle.layer_kinds = layers;
  bundle.seed = seed;
  bundle.mtp = mtp;
  return MakeTinyBundle(bundle);
}

const std::vector<TinyLayer> kHybrid = {
    {.mixer = TinyMixer::kDelta}, {}, {.mixer = TinyMixer::kDelta}};

class MtpTest : public testing::TestWithParam<Shape> {};

TEST_P(MtpTest, Greedy_TheSameTokens_AndARightHeadIsAlwaysRight) {
  for (const TinyMtp mtp : {TinyMtp::kRandom, TinyMtp::kRight}) {
    const BundleBytes bytes = WithHead(mtp, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t kv : {ARN_KV_INT8, ARN_KV_INT4}) {
      if (kv == ARN_KV_INT4 && HasState(GetParam())) continue;  // refused
      SCOPED_TRACE(std::string(mtp == TinyMtp::kRight ? "right, " : "random, ") +
                   arn_kv_type_name(kv));
      const SessionPtr plain = NewSession(model.get(), Options(kv, ARN_SPECULATE_NONE));
      const SessionPtr guessing = NewSession(model.get(), Options(kv, ARN_SPECULATE_MTP));
      ExpectSameTexts(plain.get(), guessing.get(), 3, !HasState(GetParam()));
      if (HasFailure()) return;
      if (mtp == TinyMtp::kRandom) {
        EXPECT_LT(AcceptedShare(guessing.get()), 0.9);
      } else if (kv == ARN_KV_INT8) {
        EXPECT_EQ(1.0, AcceptedShare(guessing.get()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, MtpTest,
                         testing::ValuesIn(ForThisCpu(Join({Shapes(), StateShapes(), LinearShapes(),
                                                            WidthShapes()}))),
                         ShapeName);

class Mtp : public testing::Test {
 protected:
  const BundleBytes random_bytes_ = WithHead(TinyMtp::kRandom, kHybrid),
                    right_bytes_ = WithHead(TinyMtp::kRight, kHybrid);
  const ModelPtr random_ = OpenBytes(random_bytes_), right_ = OpenBytes(right_bytes_);
};

TEST_F(Mtp, ThousandsOfTokens_AreThoseOfPlainDecoding) {
  for (const arn_model* model : {random_.get(), right_.get()}) {
    for (const uint32_t always : {0u, 1u}) {
      arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
      options.guess_always = always;
      const SessionPtr plain = NewSession(model, Options(ARN_KV_INT8, ARN_SPECULATE_NONE)),
                       guessing = NewSession(model, options);
      for (uint32_t text = 0; text < 3; ++text) {
        const std::vector<int32_t> prompt = Prompt(40 + 13 * text);
        for (arn_session* session : {plain.get(), guessing.get()}) {
          ASSERT_EQ(ARN_OK, arn_session_reset(session));
          ASSERT_EQ(ARN_OK, arn_session_prefill(session, prompt.data(), prompt.size()));
        }
        ASSERT_EQ(Generate(plain.get(), 400).ids, Generate(guessing.get(), 400).ids);
      }
      if (always == 1) {
        EXPECT_GT(Stats(guessing.get()).guesses_accepted, 0u);
      }
    }
  }
}

TEST_F(Mtp, Sampling_TheSameTokensForTheSameSeed) {
  EXPECT_GT(ExpectSameSamples(right_.get(), /*same_pages=*/false), 50u);
}

TEST_F(Mtp, Rows_AreThoseOfTheTokensBefore) {
  TinyBundle bundle;
  bundle.vocab = bundle.hidden = 64;
  bundle.max_context = kContext;
  bundle.weights = DType::kF16;
  bundle.mtp = TinyMtp::kRightByRow;
  arn_session_options options = HeadOptions(true);
  options.state_snapshots = 3;
  for (const std::vector<TinyLayer>& layers : {kHybrid, std::vector<TinyLayer>{{}, {}}}) {
    bundle.layer_kinds = layers;
    const BundleBytes bytes = MakeTinyBundle(bundle);
    const ModelPtr model = OpenBytes(bytes);
    ExpectRowsOfTheTokensBefore(model.get(), options);
  }
}

// The head reads the rows of all tokens, however they came: it guesses the same.
TEST_F(Mtp, PromptInParts_TheSameGuesses) {
  const std::vector<arn_session_stats_data> stats = StatsOfPromptInParts(random_.get());
  for (const arn_session_stats_data& s : stats) {
    EXPECT_EQ(stats[0].guesses_proposed, s.guesses_proposed);
    EXPECT_EQ(stats[0].guesses_accepted, s.guesses_accepted);
  }
  EXPECT_GT(stats[0].guesses_accepted, 0u);
}

TEST_F(Mtp, RewoundForkedAndReset_TheSameTokensAndRightGuesses) {
  ExpectSameTextsAndRightGuesses(right_.get(), /*state_snapshots=*/3);
  const BundleBytes bytes = WithHead(TinyMtp::kRight, {{}, {}});
  const ModelPtr without_state = OpenBytes(bytes);
  ExpectSameTextsAndRightGuesses(without_state.get(), 0);
}

// The rows before are not in the saved state: the head starts with those that come.
TEST_F(Mtp, Restored_TheSameTokensAndRightGuesses) {
  ExpectRightGuessesWhenRestored(right_.get(), HeadOptions(true));
}

TEST_F(Mtp, FullContext_TheSameTokens) {
  for (const TinyMtp mtp : {TinyMtp::kRandom, TinyMtp::kRight}) {
    const BundleBytes bytes = WithHead(mtp, {{}, {20}, {}});
    const ModelPtr model = OpenBytes(bytes);
    ExpectSameTextsInAFullContext(model.get());
  }
}

TEST_F(Mtp, Cancel_LosesNothing) { ExpectSameTextWhenCancelled(random_.get()); }

// N-grams come first, then a draft model or the head.
TEST_F(Mtp, Auto_HasTheHeadBehindTheNgrams) {
  const BundleBytes plain_bytes = Bundle(DType::kF16, kHybrid);
  const ModelPtr without = OpenBytes(plain_bytes);
  const arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_AUTO);
  for (const arn_model* model : {without.get(), random_.get()}) {
    const SessionPtr plain = NewSession(model, Options(ARN_KV_INT8, ARN_SPECULATE_NONE)),
                     guessing = NewSession(model, options);
    ExpectSameTexts(plain.get(), guessing.get(), 3, false);
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    ASSERT_EQ(ARN_OK, arn_session_plan(model, &options, nullptr, 0, &plan));
    EXPECT_EQ(model != without.get(), plan.draft_bytes != 0);
    EXPECT_EQ(model != without.get(), Stats(guessing.get()).draft_ns != 0);
  }
}

TEST_F(Mtp, Plan_HasAllOfIt) {
  const arn_session_options none = Options(ARN_KV_INT8, ARN_SPECULATE_NONE),
                            with = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
  arn_memory_plan plain = ARN_MEMORY_PLAN_INIT, plan = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(random_.get(), &none, nullptr, 0, &plain));
  ASSERT_EQ(ARN_OK, arn_session_plan(random_.get(), &with, nullptr, 0, &plan));
  EXPECT_EQ(0u, plain.draft_bytes);
  EXPECT_EQ(0u, plain.draft_weights_bytes);
  EXPECT_EQ(plain.weights_bytes, plan.weights_bytes);
  // Rows of a chunk and those that may be read again, the ids, and the head's keys and values.
  EXPECT_GT(plan.draft_bytes, (24 + 16) * 32 * 4 + kContext * 4 + kContext * 2 * (16 + 2 * 4));
  EXPECT_GT(plan.draft_weights_bytes, 2u * (2 * 32 * 32 + 64 * 32 + 32 * 32 + 3 * 48 * 32));
  EXPECT_LT(plan.draft_weights_bytes, plan.weights_bytes);
  EXPECT_GE(plan.io_bytes, plain.io_bytes + plan.speculation_bytes);
  EXPECT_GE(plan.speculation_bytes, plan.draft_bytes + 15 * kVocab * 4);
}

TEST_F(Mtp, WhatCannotWork_IsRefusedByName) {
  const BundleBytes bytes = Bundle(DType::kF16, kHybrid);
  const ModelPtr without = OpenBytes(bytes);
  const auto refused = [](const arn_model* model, const arn_session_options& options,
                          arn_status status, const char* words) {
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256] = "";
    EXPECT_EQ(status, arn_session_plan(model, &options, error, sizeof error, &plan));
    EXPECT_NE(std::string::npos, std::string(error).find(words)) << error;
  };
  refused(without.get(), Options(ARN_KV_INT8, ARN_SPECULATE_MTP), ARN_UNSUPPORTED,
          "no multi-token prediction head");
  refused(random_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_MTP, without.get()), ARN_BAD_ARGUMENT,
          "a draft model is given, but speculation is 4");
  refused(random_.get(), Options(ARN_KV_INT4, ARN_SPECULATE_MTP), ARN_UNSUPPORTED,
          "recurrent state");
  refused(random_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_MTP + 1), ARN_UNSUPPORTED,
          "speculation 5 is not known");
}

}  // namespace
}  // namespace arn::test
