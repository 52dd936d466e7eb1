// Guesses of an assistant, which reads the session's own keys and values, change nothing but the
// time, whatever becomes of the text: it is continued, rewound, forked, shifted or restored.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"
#include "tests/support/speculation_support.h"

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

double AcceptedShare(const arn_session* session) {
  const arn_session_stats_data stats = Stats(session);
  EXPECT_GT(stats.guesses_proposed, 0u);
  return static_cast<double>(stats.guesses_accepted) / static_cast<double>(stats.guesses_proposed);
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
  for (const float temperature : {0.05f, 0.4f, 1.0f}) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = temperature;
    sampling.seed = 23;
    const SessionPtr plain = NewSession(right_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE)),
                     guessing = NewSession(right_.get(), Options(ARN_KV_INT8, ARN_SPECULATE_MTP));
    for (arn_session* session : {plain.get(), guessing.get()}) {
      ASSERT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
    }
    ExpectSameTexts(plain.get(), guessing.get(), 4);
    EXPECT_GT(Stats(guessing.get()).guesses_accepted, 0u);
  }
}

// One that reads the row alone is right only if that is the one of the token before, and its own
// behind a guess.
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
  for (const uint32_t guesses : {1u, 15u}) {
    arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_MTP);
    options.max_guesses = guesses;
    options.max_sequences = 2;
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

// It has nothing to read before its first guess, however the prompt came.
TEST_F(Assistant, PromptInParts_TheSameGuesses) {
  const std::vector<int32_t> prompt = Prompt(200);
  std::vector<uint64_t> accepted;
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
    accepted.push_back(Stats(session.get()).guesses_accepted);
  }
  for (const uint64_t n : accepted) EXPECT_EQ(accepted[0], n);
}

TEST_F(Assistant, RewoundForkedAndReset_TheSameTokensAndRightGuesses) {
  const BundleBytes bytes = WithAssistant(TinyMtp::kRight, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  std::vector<std::vector<int32_t>> texts[2];
  for (const bool guesses : {false, true}) {
    arn_session_options options =
        Options(ARN_KV_INT8, guesses ? ARN_SPECULATE_MTP : ARN_SPECULATE_NONE);
    options.max_sequences = 3;
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
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), arn_session_length(session.get()) - 12));
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

TEST_F(Assistant, Restored_TheSameTokensAndRightGuesses) {
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

TEST_F(Assistant, FullContext_TheSameTokens) {
  for (const arn_model* model : {random_.get(), right_.get()}) {
    for (const uint32_t overflow : {ARN_OVERFLOW_STOP, ARN_OVERFLOW_SHIFT}) {
      std::vector<std::vector<int32_t>> texts;
      for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_MTP}) {
        arn_session_options options = Options(ARN_KV_INT8, speculation);
        options.context_tokens = 128;
        options.overflow = overflow;
        if (overflow == ARN_OVERFLOW_SHIFT) options.pinned_tokens = 8;
        const SessionPtr session = NewSession(model, options);
        const std::vector<int32_t> prompt = Prompt(50);
        ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
        texts.push_back(Generate(session.get(), overflow == ARN_OVERFLOW_STOP ? 79 : 300).ids);
        if (speculation == ARN_SPECULATE_MTP) {
          EXPECT_GT(Stats(session.get()).guesses_proposed, 20u);
        }
      }
      EXPECT_EQ(texts[0], texts[1]);
    }
  }
}

TEST_F(Assistant, Cancel_LosesNothing) {
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
