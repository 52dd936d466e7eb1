// Guesses of the model's own head change nothing but the time, whatever becomes of the text: it is
// read in chunks, continued, rewound, forked, shifted or restored.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"
#include "tests/support/speculation_support.h"

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

double AcceptedShare(const arn_session* session) {
  const arn_session_stats_data stats = Stats(session);
  EXPECT_GT(stats.guesses_proposed, 0u);
  return static_cast<double>(stats.guesses_accepted) / static_cast<double>(stats.guesses_proposed);
}

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
  uint64_t accepted = 0;
  for (const float temperature : {0.05f, 0.4f, 1.0f}) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = temperature;
    sampling.seed = 23;
    const SessionPtr plain = NewSession(right_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE)),
                     guessing = NewSession(right_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_MTP));
    for (arn_session* session : {plain.get(), guessing.get()}) {
      ASSERT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
    }
    ExpectSameTexts(plain.get(), guessing.get(), 4, false);
    accepted += Stats(guessing.get()).guesses_accepted;
  }
  EXPECT_GT(accepted, 50u);
}

// A head that reads the row alone is right only if that is the one of the token before.
TEST_F(Mtp, Rows_AreThoseOfTheTokensBefore) {
  TinyBundle bundle;
  bundle.vocab = bundle.hidden = 64;
  bundle.max_context = kContext;
  bundle.weights = DType::kF16;
  bundle.mtp = TinyMtp::kRightByRow;
  for (const std::vector<TinyLayer>& layers : {kHybrid, std::vector<TinyLayer>{{}, {}}}) {
    bundle.layer_kinds = layers;
    const BundleBytes bytes = MakeTinyBundle(bundle);
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t guesses : {1u, 15u}) {
      arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
      options.max_guesses = guesses;
      options.max_sequences = 2;
      options.state_snapshots = 3;
      const SessionPtr session = NewSession(model.get(), options);
      const std::vector<int32_t> prompt = Prompt(75);  // more than a chunk
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
      int32_t next = prompt.back();
      const auto expect_counting = [&] {
        for (const int32_t id : Generate(session.get(), 37).ids) {
          next = (next + 1) % 64;
          ASSERT_EQ(next, id);
        }
      };
      expect_counting();
      ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), arn_session_length(session.get()) - 9));
      next -= 9 - 64;
      expect_counting();
      ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
      expect_counting();
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
      next -= 37 - 64;
      expect_counting();
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + 7, 30));
      next = prompt[36];
      expect_counting();
      EXPECT_EQ(1.0, AcceptedShare(session.get()));
      EXPECT_GT(Stats(session.get()).guesses_accepted, 80u);
    }
  }
}

// The head reads the rows of all tokens, however they came: it guesses the same.
TEST_F(Mtp, PromptInParts_TheSameGuesses) {
  const std::vector<int32_t> prompt = Prompt(200);
  std::vector<uint64_t> proposed, accepted;
  for (const uint32_t chunk : {256u, 64u, 24u, 5u}) {
    arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
    options.prefill_chunk = chunk;
    options.max_guesses = 4;
    const SessionPtr session = NewSession(random_.get(), options);
    for (size_t done = 0; done < prompt.size();) {
      const size_t n = std::min<size_t>(done % 2 == 0 ? 33 : 90, prompt.size() - done);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + done, n));
      done += n;
    }
    Generate(session.get(), 200);
    proposed.push_back(Stats(session.get()).guesses_proposed);
    accepted.push_back(Stats(session.get()).guesses_accepted);
  }
  for (size_t i = 1; i < proposed.size(); ++i) {
    EXPECT_EQ(proposed[0], proposed[i]);
    EXPECT_EQ(accepted[0], accepted[i]);
  }
  EXPECT_GT(accepted[0], 0u);
}

TEST_F(Mtp, RewoundForkedAndReset_TheSameTokensAndRightGuesses) {
  for (const bool has_state : {false, true}) {
    const BundleBytes bytes =
        WithHead(TinyMtp::kRight, has_state ? kHybrid : std::vector<TinyLayer>{{}, {}});
    const ModelPtr model = OpenBytes(bytes);
    std::vector<std::vector<int32_t>> texts[2];
    for (const bool guesses : {false, true}) {
      arn_session_options options =
          Options(ARN_KV_INT8, guesses ? ARN_SPECULATE_MTP : ARN_SPECULATE_NONE);
      options.max_sequences = 3;
      if (has_state) options.state_snapshots = 3;
      const SessionPtr session = NewSession(model.get(), options);
      const std::vector<int32_t> prompt = Prompt(70);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
      const auto generate = [&] {
        const uint64_t before = Stats(session.get()).guesses_accepted;
        texts[guesses].push_back(Generate(session.get(), 20).ids);
        if (guesses) {
          EXPECT_GT(Stats(session.get()).guesses_accepted, before);
        }
      };
      generate();
      ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 2));
      ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), arn_session_length(session.get()) - 12))
          << arn_session_last_error(session.get());
      generate();
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
      generate();
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
      int32_t id = 0;
      for (int i = 0; i < 5; ++i) ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
      generate();
      const uint32_t both[2] = {0, 2};
      int32_t ids[2];
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 2, ids));
      generate();
      ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + 9, 40));
      generate();
      if (guesses) {
        EXPECT_EQ(1.0, AcceptedShare(session.get()));
      }
    }
    EXPECT_EQ(texts[0], texts[1]);
  }
}

// The rows before are not in the saved state: the head starts with those that come.
TEST_F(Mtp, Restored_TheSameTokensAndRightGuesses) {
  const std::vector<int32_t> prompt = Prompt(70);
  const arn_session_options with = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
  const SessionPtr first = NewSession(right_.get(), with);
  ASSERT_EQ(ARN_OK, arn_session_prefill(first.get(), prompt.data(), prompt.size()));
  Generate(first.get(), 20);
  uint64_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_bytes(first.get(), &n));
  std::vector<uint8_t> saved(n);
  ASSERT_EQ(ARN_OK, arn_session_save_memory(first.get(), saved.data(), saved.size(), &n));
  const std::vector<int32_t> expected = Generate(first.get(), 30).ids;
  const SessionPtr restored = NewSession(right_.get(), with);
  ASSERT_EQ(ARN_OK,
            arn_session_restore_memory(restored.get(), saved.data(), saved.size(), nullptr));
  EXPECT_EQ(expected, Generate(restored.get(), 30).ids);
  EXPECT_EQ(1.0, AcceptedShare(restored.get()));
}

TEST_F(Mtp, FullContext_TheSameTokens) {
  for (const TinyMtp mtp : {TinyMtp::kRandom, TinyMtp::kRight}) {
    const BundleBytes bytes = WithHead(mtp, {{}, {20}, {}});
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t overflow : {ARN_OVERFLOW_STOP, ARN_OVERFLOW_SHIFT}) {
      std::vector<std::vector<int32_t>> texts;
      for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_MTP}) {
        arn_session_options options = Options(ARN_KV_INT8, speculation);
        options.context_tokens = 128;
        options.overflow = overflow;
        if (overflow == ARN_OVERFLOW_SHIFT) options.pinned_tokens = 8;
        const SessionPtr session = NewSession(model.get(), options);
        const std::vector<int32_t> prompt = Prompt(50);
        ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
        const uint32_t n = overflow == ARN_OVERFLOW_STOP ? 79 : 300;
        texts.push_back(Generate(session.get(), n).ids);
        if (speculation == ARN_SPECULATE_MTP) {
          EXPECT_GT(Stats(session.get()).guesses_proposed, 20u);
        }
      }
      EXPECT_EQ(texts[0], texts[1]);
    }
  }
}

TEST_F(Mtp, Cancel_LosesNothing) {
  std::vector<int32_t> texts[2];
  for (const bool guesses : {false, true}) {
    const SessionPtr session = NewSession(
        random_.get(), Options(ARN_KV_INT8, guesses ? ARN_SPECULATE_MTP : ARN_SPECULATE_NONE));
    const std::vector<int32_t> prompt = Prompt(70);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    texts[guesses] = GenerateWithCancels(session.get(), 120);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

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
