// arn_session_follow: the sequence ends up as if prefilled with exactly these tokens, and only
// tokens after the common prefix are run.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t kv_type, uint32_t backend = ARN_BACKEND_CPU) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = kv_type;
  options.n_threads = 1;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 13;
  if (kv_type == ARN_KV_INT4 || kv_type == ARN_KV_INT2) options.kv_residual = 16;
  return options;
}

uint64_t PrefillTokens(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats.prefill_tokens;
}

size_t Common(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

// Returns the first `kept` of `before`, then n others that depend on `seed`.
std::vector<int32_t> Changed(const std::vector<int32_t>& before, size_t kept, size_t n,
                             uint32_t seed) {
  std::vector<int32_t> ids(before.begin(), before.begin() + static_cast<ptrdiff_t>(kept));
  for (uint32_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((seed + 11 * i) % kVocab));
  return ids;
}

// Typical prompt changes: extend, rewind, diverge, start again.
std::vector<std::vector<int32_t>> Prompts() {
  std::vector<std::vector<int32_t>> all = {SomeIds(30, kVocab)};
  const auto add = [&all](size_t kept, size_t n, uint32_t seed) {
    all.push_back(Changed(all.back(), kept, n, seed));
  };
  add(30, 25, 5);   // longer
  add(55, 0, 0);    // the same
  add(54, 0, 0);    // one less
  add(54, 1, 60);   // another last token
  add(50, 9, 17);   // another tail
  add(24, 40, 30);  // diverges at a page border
  add(64, 60, 3);   // much longer
  add(3, 2, 9);     // keeps almost nothing
  add(0, 128, 21);  // nothing in common, a whole context
  add(127, 1, 1);
  add(0, 1, 2);  // one token
  add(1, 0, 0);
  return all;
}

class SessionReusePrefixTest : public testing::TestWithParam<Shape> {
 protected:
  SessionReusePrefixTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.layer_kinds = GetParam().layers;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }

  // The equivalent calls by hand: their logits equal follow's bit for bit.
  void ByHand(arn_session* session, const std::vector<int32_t>& ids, uint32_t* kept) {
    const std::vector<int32_t> before = TokensOf(session);
    const float* logits = nullptr;
    const bool has_logits = arn_session_logits(session, &logits) == ARN_OK;
    const size_t common = Common(before, ids);
    *kept = static_cast<uint32_t>(common);
    if (common == ids.size()) {
      if (before.size() == common && has_logits) return;
      --*kept;
    }
    if (*kept < arn_session_first_rewind_position(session)) *kept = 0;
    ASSERT_EQ(ARN_OK, *kept == 0 ? arn_session_reset(session) : arn_session_rewind(session, *kept));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data() + *kept, ids.size() - *kept));
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

TEST_P(SessionReusePrefixTest, EqualsAFreshPrefill_AndRunsOnlyWhatIsNew) {
  struct Kind {
    uint32_t kv;
    double off;  // difference from a fresh prefill, which uses other chunks and quantises at other
                 // times
  };
  const Kind kinds[] = {{ARN_KV_F32, 3e-5},
                        {ARN_KV_F16, 5e-3},
                        {ARN_KV_INT8, 0.05},
                        {ARN_KV_INT4, 0.4},
                        {ARN_KV_INT2, 1.5}};
  for (const Kind& kind : kinds) {
    for (uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      const SessionPtr session = NewSession(model_.get(), Options(kind.kv, backend));
      const SessionPtr by_hand = NewSession(model_.get(), Options(kind.kv, backend));
      uint64_t expected_tokens = 0, total_kept = 0;
      for (const std::vector<int32_t>& ids : Prompts()) {
        SCOPED_TRACE(testing::Message() << "kv " << kind.kv << " backend " << backend << ", "
                                        << ids.size() << " tokens from " << ids[0]);
        uint32_t kept = 999, expected_kept = 0;
        ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), &kept))
            << arn_session_last_error(session.get());
        ASSERT_NO_FATAL_FAILURE(ByHand(by_hand.get(), ids, &expected_kept));
        EXPECT_EQ(expected_kept, kept);
        expected_tokens += ids.size() - kept;
        total_kept += kept;
        EXPECT_EQ(expected_tokens, PrefillTokens(session.get()));
        EXPECT_EQ(ids, TokensOf(session.get()));
        EXPECT_EQ(0.0, LogitDifference(session.get(), by_hand.get(), kVocab));
        const SessionPtr fresh = NewSession(model_.get(), Options(kind.kv, backend));
        ASSERT_EQ(ARN_OK, arn_session_prefill(fresh.get(), ids.data(), ids.size()));
        EXPECT_LT(LogitDifference(session.get(), fresh.get(), kVocab), kind.off);
      }
      // Extending and repeating keep all tokens for every layer type.
      EXPECT_GE(total_kept, 30u + 55u + 64u + 1u);
    }
  }
}

// A conversation: passes all tokens each turn, including the answers decoded in between.
TEST_P(SessionReusePrefixTest, Turns_NeverRunATokenTwice) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_F32));
  std::vector<int32_t> all;
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const std::vector<int32_t> question = SomeIds(9 + turn, 50 + turn);
    all.insert(all.end(), question.begin(), question.end());
    uint32_t kept = 0;
    ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), all.data(), all.size(), &kept));
    EXPECT_EQ(all.size() - question.size(), kept);
    const std::vector<int32_t> answer = Decode(session.get(), 14);
    const SessionPtr fresh = NewSession(model_.get(), Options(ARN_KV_F32));
    EXPECT_EQ(Greedy(fresh.get(), all, 14), answer);
    all.insert(all.end(), answer.begin(), answer.end());
  }
  EXPECT_EQ(9u + 10u + 11u + 12u, PrefillTokens(session.get()));
}

// An uncached session gives the same results.
TEST_P(SessionReusePrefixTest, NoCache_SaysTheSame) {
  arn_session_options options = Options(ARN_KV_F32);
  const SessionPtr session = NewSession(model_.get(), options);
  options.no_cache = 1;
  const SessionPtr truth = NewSession(model_.get(), options);
  for (const std::vector<int32_t>& ids : Prompts()) {
    for (arn_session* s : {session.get(), truth.get()}) {
      ASSERT_EQ(ARN_OK, arn_session_follow(s, ids.data(), ids.size(), nullptr));
    }
    EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 3e-5);
    EXPECT_EQ(ids, TokensOf(truth.get()));
  }
}

// A cancelled call keeps its progress, and the next call continues from it.
TEST_P(SessionReusePrefixTest, Cancelled_ThenFollowedAgain_IsWhole) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_F32));
  const std::vector<int32_t> first = SomeIds(20, kVocab), longer = Changed(first, 20, 40, 7);
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), first.data(), first.size(), nullptr));
  arn_session_cancel(session.get());
  uint32_t kept = 0;
  EXPECT_EQ(ARN_CANCELLED, arn_session_follow(session.get(), longer.data(), longer.size(), &kept));
  EXPECT_EQ(20u, kept);
  EXPECT_EQ(first, TokensOf(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), longer.data(), longer.size(), &kept));
  EXPECT_EQ(20u, kept);
  const SessionPtr fresh = NewSession(model_.get(), Options(ARN_KV_F32));
  ASSERT_EQ(ARN_OK, arn_session_prefill(fresh.get(), longer.data(), longer.size()));
  EXPECT_LT(LogitDifference(session.get(), fresh.get(), kVocab), 3e-5);
}

// Changes only the selected sequence, even with shared pages.
TEST_P(SessionReusePrefixTest, AFork_LeavesTheOthers) {
  arn_session_options options = Options(ARN_KV_F32);
  options.max_sequences = 3;
  const SessionPtr session = NewSession(model_.get(), options);
  const std::vector<int32_t> system = SomeIds(21, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), system.data(), system.size()));
  std::vector<std::vector<int32_t>> all = {system};
  for (uint32_t s : {1u, 2u}) {
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, s));
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    all.push_back(Changed(system, 21 - 4 * (s - 1), 18, 5 * s));
    uint32_t kept = 0;
    ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), all[s].data(), all[s].size(), &kept));
    if (s == 1) {
      EXPECT_EQ(21u, kept);
    }
  }
  for (uint32_t s : {0u, 1u, 2u}) {
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    EXPECT_EQ(all[s], TokensOf(session.get()));
    const SessionPtr fresh = NewSession(model_.get(), Options(ARN_KV_F32));
    ASSERT_EQ(ARN_OK, arn_session_prefill(fresh.get(), all[s].data(), all[s].size()));
    EXPECT_LT(LogitDifference(session.get(), fresh.get(), kVocab), 3e-5) << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, SessionReusePrefixTest, testing::ValuesIn(Shapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Widths, SessionReusePrefixTest, testing::ValuesIn(WidthShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(StateWidths, SessionReusePrefixTest, testing::ValuesIn(StateWidthShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(LinearAttention, SessionReusePrefixTest, testing::ValuesIn(LinearShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(States, SessionReusePrefixTest, testing::ValuesIn(StateShapes()),
                         ShapeName);

TEST(SessionReusePrefix_Errors, WhatIsRefused_ChangesNothing) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_KV_F32);
  options.overflow = ARN_OVERFLOW_SHIFT;  // follow drops no requested tokens
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> ids = SomeIds(20, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), nullptr));
  const auto refused = [&](const std::vector<int32_t>& other, arn_status status,
                           const std::string& word) {
    uint32_t kept = 77;
    EXPECT_EQ(status, arn_session_follow(session.get(), other.data(), other.size(), &kept));
    EXPECT_EQ(0u, kept);
    const std::string said = arn_session_last_error(session.get());
    EXPECT_NE(std::string::npos, said.find(word)) << said;
    EXPECT_EQ(ids, TokensOf(session.get()));
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
  };
  refused({}, ARN_BAD_ARGUMENT, "no tokens");
  refused({3, 10, static_cast<int32_t>(kVocab)}, ARN_BAD_TOKEN, "token 2 is 61");
  refused({3, -1}, ARN_BAD_TOKEN, "token 1 is -1");
  refused(SomeIds(129, kVocab), ARN_CONTEXT_FULL, "129 tokens do not fit a context of 128");
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_follow(session.get(), nullptr, 3, nullptr));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_follow(nullptr, ids.data(), ids.size(), nullptr));
}

// All tokens are present, but the last one has no logits.
TEST(SessionReusePrefix_Logits, NotThere_OneTokenRuns) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(ARN_KV_F32));
  const std::vector<int32_t> ids = SomeIds(20, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 12));
  uint32_t kept = 0;
  // The session's own token buffer is a valid argument.
  const int32_t* own = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &own, &n));
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), own, n, &kept));
  EXPECT_EQ(11u, kept);
  const SessionPtr fresh = NewSession(model.get(), Options(ARN_KV_F32));
  ASSERT_EQ(ARN_OK, arn_session_prefill(fresh.get(), ids.data(), 12));
  EXPECT_LT(LogitDifference(session.get(), fresh.get(), kVocab), 1e-6);
}

// Sequences that share a small pool: finished chunks stay, and the call can be repeated once pages
// are free.
TEST(SessionReusePrefix_SharedPool, Full_KeepsFinishedChunks) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_KV_F32);
  options.max_sequences = 2;
  options.kv_tokens = 128;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> ids = SomeIds(100, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), nullptr));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  uint32_t kept = 0;
  EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_follow(session.get(), ids.data(), ids.size(), &kept));
  EXPECT_EQ(0u, kept);
  EXPECT_EQ(13u, arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), &kept));
  EXPECT_EQ(13u, kept);
}

}  // namespace
}  // namespace arn::test
