// Guesses of a draft model change nothing but the time, whatever becomes of the text: it is
// continued, rewound, forked, shifted or restored.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/head_support.h"
#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"

namespace arn::test {
namespace {

// Accepted guesses of those proposed.
class DraftTest : public testing::TestWithParam<Shape> {};

// int8 pages: those of the draft, too.
TEST_P(DraftTest, Greedy_TheSameTokens_AndTheModelItselfIsAlwaysRight) {
  const BundleBytes bytes = Bundle(DType::kF16, GetParam().layers),
                    other = Bundle(DType::kF16, {{9}}, 2);
  const ModelPtr model = OpenBytes(bytes), foreign = OpenBytes(other);
  for (const arn_model* draft : {model.get(), foreign.get()}) {
    for (const uint32_t kv : {ARN_KV_INT8, ARN_KV_INT4}) {
      SCOPED_TRACE(std::string(draft == model.get() ? "itself, " : "foreign, ") +
                   arn_kv_type_name(kv));
      const SessionPtr plain = NewSession(model.get(), Options(kv, ARN_SPECULATE_NONE));
      const SessionPtr guessing = NewSession(model.get(), Options(kv, ARN_SPECULATE_DRAFT, draft));
      ExpectSameTexts(plain.get(), guessing.get(), 3);
      if (HasFailure()) return;
      if (draft == foreign.get()) {
        EXPECT_LT(AcceptedShare(guessing.get()), 0.5);
      } else if (kv == ARN_KV_INT8) {
        EXPECT_EQ(1.0, AcceptedShare(guessing.get()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, DraftTest, testing::ValuesIn(Shapes()), ShapeName);

class Draft : public testing::Test {
 protected:
  static BundleBytes Target() { return Bundle(DType::kF16, {{}, {20}, {}}); }
  // Right now and then: its second layer is another one.
  static BundleBytes Smaller() { return Bundle(DType::kF16, {{}}); }

  const BundleBytes bytes_ = Target(), smaller_ = Smaller();
  const ModelPtr model_ = OpenBytes(bytes_), draft_ = OpenBytes(smaller_);
};

TEST_F(Draft, Sampling_TheSameTokensForTheSameSeed) {
  uint64_t accepted = 0;
  for (const float temperature : {0.05f, 0.4f, 1.0f}) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = temperature;
    sampling.seed = 23;
    const SessionPtr plain = NewSession(model_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE)),
                     guessing = NewSession(model_.get(),
                                           Options(ARN_KV_INT8, ARN_SPECULATE_DRAFT, model_.get()));
    for (arn_session* session : {plain.get(), guessing.get()}) {
      ASSERT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
    }
    ExpectSameTexts(plain.get(), guessing.get(), 4);
    accepted += Stats(guessing.get()).guesses_accepted;
  }
  EXPECT_GT(accepted, 50u);
}

// By measured times, with the n-grams before the draft and without a draft, too.
TEST_F(Draft, Auto_TheSameTokens) {
  for (const arn_model* draft :
       {static_cast<const arn_model*>(nullptr), static_cast<const arn_model*>(draft_.get()),
        static_cast<const arn_model*>(model_.get())}) {
    for (const uint32_t always : {0u, 1u}) {
      arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_AUTO, draft);
      options.guess_always = always;
      const SessionPtr plain = NewSession(model_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE));
      const SessionPtr guessing = NewSession(model_.get(), options);
      ExpectSameTexts(plain.get(), guessing.get(), 5);
      const arn_session_stats_data stats = Stats(guessing.get());
      if (draft == nullptr) {
        EXPECT_EQ(0u, stats.draft_ns);
      }
      if (draft != nullptr && always == 1) {
        EXPECT_GT(stats.draft_ns, 0u);
        EXPECT_LE(stats.draft_ns, stats.decode_ns);
      }
    }
  }
}

// The draft follows whatever text it is asked about: it holds what the texts have in common.
TEST_F(Draft, RewoundForkedAndReset_TheSameTokens) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  std::vector<std::vector<int32_t>> texts[2];
  for (const bool guesses : {false, true}) {
    arn_session_options options =
        Options(ARN_KV_INT4, guesses ? ARN_SPECULATE_DRAFT : ARN_SPECULATE_NONE,
                guesses ? model.get() : nullptr);
    options.max_sequences = 3;
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> prompt = Prompt(70);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    const auto generate = [&] { texts[guesses].push_back(Generate(session.get(), 20).ids); };
    generate();
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 2));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), arn_session_length(session.get()) - 12));
    generate();
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
    generate();
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), arn_session_length(session.get())));
    generate();
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
    int32_t id = 0;
    for (int i = 0; i < 5; ++i) ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    generate();
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + 9, 40));
    generate();
    if (guesses) {
      EXPECT_GT(AcceptedShare(session.get()), 0.8);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(Draft, Restored_TheSameTokensAndRightGuesses) {
  ExpectRightGuessesWhenRestored(model_.get(),
                                 Options(ARN_KV_INT8, ARN_SPECULATE_DRAFT, model_.get()));
}

// A context that shifts, one that ends the text, and a draft with a shorter one.
TEST_F(Draft, FullContext_TheSameTokens) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = 90;
  bundle.weights = DType::kF16;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr brief = OpenBytes(bytes);
  for (const uint32_t overflow : {ARN_OVERFLOW_STOP, ARN_OVERFLOW_SHIFT}) {
    std::vector<std::vector<int32_t>> texts;
    for (const arn_model* draft :
         {static_cast<const arn_model*>(nullptr), static_cast<const arn_model*>(model_.get()),
          static_cast<const arn_model*>(brief.get())}) {
      arn_session_options options =
          Options(ARN_KV_INT8, draft == nullptr ? ARN_SPECULATE_NONE : ARN_SPECULATE_DRAFT, draft);
      options.context_tokens = 128;
      options.overflow = overflow;
      if (overflow == ARN_OVERFLOW_SHIFT) options.pinned_tokens = 8;
      const SessionPtr session = NewSession(model_.get(), options);
      const std::vector<int32_t> prompt = Prompt(50);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
      const uint32_t n = overflow == ARN_OVERFLOW_STOP ? 79 : 300;
      texts.push_back(Generate(session.get(), n).ids);
      EXPECT_EQ(texts[0], texts.back());
      if (draft != nullptr) {
        EXPECT_GT(Stats(session.get()).guesses_proposed, 20u);
      }
    }
  }
}

// A cancel during a callback, before the draft runs again.
TEST_F(Draft, Cancel_LosesNothing) {
  std::vector<int32_t> texts[2];
  for (const bool guesses : {false, true}) {
    const SessionPtr session = NewSession(
        model_.get(), Options(ARN_KV_INT8, guesses ? ARN_SPECULATE_DRAFT : ARN_SPECULATE_NONE,
                              guesses ? draft_.get() : nullptr));
    const std::vector<int32_t> prompt = Prompt(70);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    texts[guesses] = GenerateWithCancels(session.get(), 120);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(Draft, Plan_HasAllOfIt) {
  const arn_session_options none = Options(ARN_KV_INT8, ARN_SPECULATE_NONE),
                            with = Options(ARN_KV_INT8, ARN_SPECULATE_DRAFT, draft_.get());
  arn_memory_plan plain = ARN_MEMORY_PLAN_INIT, plan = ARN_MEMORY_PLAN_INIT,
                  alone = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &none, nullptr, 0, &plain));
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &with, nullptr, 0, &plan));
  ASSERT_EQ(ARN_OK, arn_session_plan(draft_.get(), &none, nullptr, 0, &alone));
  EXPECT_EQ(0u, plain.draft_bytes);
  EXPECT_GE(plan.speculation_bytes, plan.draft_bytes + 15 * kVocab * 4);
  EXPECT_LT(plan.speculation_bytes, plan.draft_bytes + 15 * kVocab * 4 + 512);
  EXPECT_GE(plan.draft_bytes, alone.kv_bytes + alone.activations_bytes);
  EXPECT_EQ(alone.weights_bytes, plan.draft_weights_bytes);
  EXPECT_GE(plan.io_bytes, plain.io_bytes + plan.speculation_bytes);
}

TEST_F(Draft, WhatCannotWork_IsRefusedByName) {
  TinyBundle bundle;
  bundle.vocab = kVocab + 1;
  const BundleBytes more = MakeTinyBundle(bundle),
                    scan = Bundle(DType::kF32, {{0, 0, -1, TinyMixer::kScan}, {}});
  const ModelPtr with_more = OpenBytes(more), scans = OpenBytes(scan);
  const auto refused = [&](uint32_t speculation, const arn_model* draft, arn_status status,
                           const char* words) {
    const arn_session_options options = Options(ARN_KV_INT8, speculation, draft);
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256];
    EXPECT_EQ(status, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
    EXPECT_NE(std::string::npos, std::string(error).find(words)) << error;
  };
  refused(ARN_SPECULATE_DRAFT, with_more.get(), ARN_BAD_ARGUMENT,
          "another vocabulary: 62 tokens, the model has 61");
  refused(ARN_SPECULATE_DRAFT, scans.get(), ARN_UNSUPPORTED, "recurrent state");
  refused(ARN_SPECULATE_DRAFT, nullptr, ARN_BAD_ARGUMENT, "draft is NULL");
  refused(ARN_SPECULATE_NGRAM, draft_.get(), ARN_BAD_ARGUMENT, "speculation is 1");
}

}  // namespace
}  // namespace arn::test
