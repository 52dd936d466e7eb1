// What tests of speculation share: texts that repeat themselves in part, and a comparison of
// sessions with guesses to one without.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

inline constexpr uint32_t kVocab = 61;
inline constexpr uint32_t kContext = 512;

struct Text {
  std::vector<int32_t> ids;  // as the callback got them
  std::vector<uint32_t> lengths;
  arn_session* session = nullptr;
};

inline int32_t OnToken(void* user, int32_t id, const char*, size_t) {
  Text& text = *static_cast<Text*>(user);
  text.ids.push_back(id);
  text.lengths.push_back(arn_session_length(text.session));
  return 0;
}

inline arn_session_options Options(uint32_t kv, uint32_t speculation,
                                   const arn_model* draft = nullptr) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv;
  options.n_threads = 2;
  options.context_tokens = kContext;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 24;
  if (kv >= ARN_KV_INT4) options.kv_residual = 32;
  options.speculation = speculation;
  options.draft = draft;
  options.guess_always = speculation == ARN_SPECULATE_NONE ? 0 : 1;
  return options;
}

inline arn_session_stats_data Stats(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats;
}

inline double AcceptedShare(const arn_session* session) {
  const arn_session_stats_data stats = Stats(session);
  EXPECT_GT(stats.guesses_proposed, 0u);
  return static_cast<double>(stats.guesses_accepted) / static_cast<double>(stats.guesses_proposed);
}

inline Text Generate(arn_session* session, uint32_t n) {
  Text text;
  text.session = session;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = n;
  options.ignore_eos = 1;
  options.callback = OnToken;
  options.user = &text;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_session_generate(session, &options, &result))
      << arn_session_last_error(session);
  EXPECT_EQ(n, result.n_tokens);
  return text;
}

// A prompt that repeats itself, with changes, so that guesses are right and wrong.
inline std::vector<int32_t> Prompt(uint32_t n) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < n; ++i) {
    ids.push_back(static_cast<int32_t>((i % 13 * 5 + i / 29) % kVocab));
  }
  return ids;
}

inline void ExpectSameState(arn_session* plain, arn_session* guessing, bool same_pages) {
  EXPECT_EQ(arn_session_length(plain), arn_session_length(guessing));
  const int32_t *a = nullptr, *b = nullptr;
  uint32_t n_a = 0, n_b = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(plain, &a, &n_a));
  ASSERT_EQ(ARN_OK, arn_session_tokens(guessing, &b, &n_b));
  EXPECT_EQ(std::vector<int32_t>(a, a + n_a), std::vector<int32_t>(b, b + n_b));
  const float *x = nullptr, *y = nullptr;
  ASSERT_EQ(ARN_OK, arn_session_logits(plain, &x));
  ASSERT_EQ(ARN_OK, arn_session_logits(guessing, &y));
  EXPECT_EQ(0, std::memcmp(x, y, kVocab * sizeof(float)));
  if (same_pages) {
    EXPECT_EQ(Stats(plain).kv_used_bytes, Stats(guessing).kv_used_bytes);
  }
  EXPECT_EQ(Stats(plain).decode_tokens, Stats(guessing).decode_tokens);
}

// Generates by turns with prompts in between, in both sessions. same_pages: they use as many pages.
inline void ExpectSameTexts(arn_session* plain, arn_session* guessing, uint32_t turns,
                            bool same_pages = true) {
  const std::vector<int32_t> prompt = Prompt(90);
  for (uint32_t turn = 0; turn < turns; ++turn) {
    for (arn_session* session : {plain, guessing}) {
      ASSERT_EQ(ARN_OK, arn_session_prefill(session, prompt.data() + turn, turn == 0 ? 70 : 11))
          << arn_session_last_error(session);
    }
    const Text expected = Generate(plain, 60 + turn), found = Generate(guessing, 60 + turn);
    ASSERT_EQ(expected.ids, found.ids) << "turn " << turn;
    ASSERT_EQ(expected.lengths, found.lengths) << "turn " << turn;
    ExpectSameState(plain, guessing, same_pages);
    if (testing::Test::HasFailure()) return;
  }
}

// Generates at least n tokens in calls that the callback cancels at every fifth token. Returns the
// ids that it received.
inline std::vector<int32_t> GenerateWithCancels(arn_session* session, size_t n) {
  struct User {
    arn_session* session;
    std::vector<int32_t> ids;
  } user = {session, {}};
  for (uint32_t calls = 0; calls < 100 && user.ids.size() < n; ++calls) {
    arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
    options.max_tokens = 40;
    options.ignore_eos = 1;
    options.user = &user;
    options.callback = [](void* to, int32_t id, const char*, size_t) -> int32_t {
      auto& u = *static_cast<User*>(to);
      u.ids.push_back(id);
      if (u.ids.size() % 5 == 3) arn_session_cancel(u.session);
      return 0;
    };
    const arn_status status = arn_session_generate(session, &options, nullptr);
    EXPECT_TRUE(status == ARN_OK || status == ARN_CANCELLED);
  }
  EXPECT_GE(user.ids.size(), n);
  return user.ids;
}

inline BundleBytes Bundle(DType weights, const std::vector<TinyLayer>& layers, uint64_t seed = 1) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = kContext;
  bundle.weights = weights;
  bundle.layer_kinds = layers;
  bundle.seed = seed;
  return MakeTinyBundle(bundle);
}

}  // namespace arn::test
