// Several sequences in one session: forks, batches and their limits, against separate sessions.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t backend, uint32_t sequences) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.n_threads = 2;
  options.context_tokens = 96;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  options.max_sequences = sequences;
  return options;
}

BundleBytes Bundle(const std::vector<TinyLayer>& layers) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = layers;
  return MakeTinyBundle(bundle);
}

void Prefill(arn_session* session, uint32_t sequence, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ARN_OK, arn_session_select(session, sequence));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
      << arn_session_last_error(session);
}

// Returns the greedy ids of a separate session.
std::vector<int32_t> Alone(const arn_model* model, uint32_t backend,
                           const std::vector<int32_t>& prompt, size_t n) {
  const SessionPtr session = NewSession(model, Options(backend, 1));
  return Greedy(session.get(), prompt, n);
}

std::vector<int32_t> Sampled(const arn_model* model, const std::vector<int32_t>& prompt,
                             const arn_sampling& sampling, size_t n) {
  const SessionPtr session = NewSession(model, Options(ARN_BACKEND_CPU, 1));
  EXPECT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
  return Greedy(session.get(), prompt, n);
}

class SequencesTest : public testing::TestWithParam<std::vector<TinyLayer>> {
 protected:
  SequencesTest() : bytes_(Bundle(GetParam())), model_(OpenBytes(bytes_)) {}
  BundleBytes bytes_;
  ModelPtr model_;
};

// A batch of sequences with different lengths gives the same tokens as separate sessions.
TEST_P(SequencesTest, DecodeBatch_DifferentLengths_EqualsSeparateSessions) {
  for (uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const SessionPtr session = NewSession(model_.get(), Options(backend, 4));
    const std::vector<uint32_t> order = {2, 0, 3};  // sequence 1 stays empty
    const size_t lengths[] = {5, 0, 33, 18};
    std::vector<std::vector<int32_t>> found(4);
    for (uint32_t s : order) {
      ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), s, SomeIds(lengths[s], 60 - s)));
    }
    for (int i = 0; i < 40; ++i) {
      int32_t ids[3];
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), order.data(), 3, ids))
          << arn_session_last_error(session.get());
      for (int k = 0; k < 3; ++k) found[order[k]].push_back(ids[k]);
    }
    for (uint32_t s : order) {
      EXPECT_EQ(Alone(model_.get(), backend, SomeIds(lengths[s], 60 - s), 40), found[s]) << s;
    }
  }
}

TEST_P(SequencesTest, Fork_ThenDifferentTokens_EqualsRecomputing) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_CPU, 3));
  const SessionPtr truth = NewSession(model_.get(), Options(ARN_BACKEND_CPU, 1));
  const std::vector<int32_t> prefix = SomeIds(29, kVocab);
  ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), 0, prefix));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 1, 2));
  EXPECT_EQ(ARN_BAD_STATE, arn_session_fork(session.get(), 0, 2));
  // A fork has its parent's logits.
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
  ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), prefix.data(), prefix.size()));
  EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 1e-6);
  for (uint32_t s : {1u, 0u, 2u}) {
    std::vector<int32_t> own = SomeIds(20, 11 + s);
    ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), s, own));
    own.insert(own.begin(), prefix.begin(), prefix.end());
    ASSERT_EQ(ARN_OK, arn_session_reset(truth.get()));
    ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), own.data(), own.size()));
    EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 3e-5) << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, SequencesTest,
                         testing::Values(std::vector<TinyLayer>{{}, {}},
                                         std::vector<TinyLayer>{{9}, {}, {9}},
                                         std::vector<TinyLayer>{{0, 16}, {}, {0, 0, 1}},
                                         StateShapes()[0].layers, StateShapes()[3].layers));

// Each sequence has its own random state, so a batch gives the same tokens as separate sessions.
TEST(Sequences_Sampling, SeedsOfTheirOwn_SameTokensAsAlone) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(ARN_BACKEND_CPU, 2));
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 1.0f;
  std::vector<std::vector<int32_t>> expected, found(2);
  for (uint32_t s : {0u, 1u}) {
    sampling.seed = 7 + s;
    expected.push_back(Sampled(model.get(), SomeIds(9, kVocab), sampling, 30));
    ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), s, SomeIds(9, kVocab)));
    ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
  }
  EXPECT_NE(expected[0], expected[1]);
  const uint32_t both[] = {0, 1};
  for (int i = 0; i < 30; ++i) {
    int32_t ids[2];
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 2, ids));
    for (int s = 0; s < 2; ++s) found[s].push_back(ids[s]);
  }
  EXPECT_EQ(expected, found);
}

// Four forks give four different texts at temperature 1, and the same four in a repetition. A fork
// with a set seed gives that seed's text.
TEST(Sequences_Sampling, Forks_HaveRandomNumbersOfTheirOwn) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const std::vector<int32_t> prompt = SomeIds(9, kVocab);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 1.0f;
  sampling.seed = 7;
  const std::vector<int32_t> alone = Sampled(model.get(), prompt, sampling, 30);
  std::vector<std::vector<int32_t>> rounds[3];
  for (int round = 0; round < 3; ++round) {
    const SessionPtr session = NewSession(model.get(), Options(ARN_BACKEND_CPU, 4));
    ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
    ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), 0, prompt));
    for (uint32_t s : {1u, 2u, 3u}) ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, s));
    if (round == 2) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
      ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
    }
    rounds[round].resize(4);
    const uint32_t all[] = {0, 1, 2, 3};
    for (int i = 0; i < 30; ++i) {
      int32_t ids[4];
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), all, 4, ids));
      for (int s = 0; s < 4; ++s) rounds[round][s].push_back(ids[s]);
    }
  }
  EXPECT_EQ(alone, rounds[0][0]) << "what is forked from goes on as it was";
  for (int s = 0; s < 4; ++s) {
    for (int other = 0; other < s; ++other) EXPECT_NE(rounds[0][s], rounds[0][other]);
  }
  EXPECT_EQ(rounds[0], rounds[1]);
  EXPECT_EQ(alone, rounds[2][2]);
}

// Forks only add their tails. kv_tokens of exactly that size is sufficient.
TEST(Sequences_SharedPool, FortyForksOfALongPrompt_FitWhatTheyAdd) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = 1100;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_BACKEND_CPU, 40);
  options.context_tokens = 1040;
  options.kv_tokens = 1000 + 40 * 24;
  const SessionPtr session = NewSession(model.get(), options);
  ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), 0, SomeIds(1000, kVocab)));
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
  const uint64_t of_prompt = stats.kv_used_bytes;
  std::vector<uint32_t> all = {0};
  for (uint32_t s = 1; s < 40; ++s) {
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, s));
    all.push_back(s);
  }
  ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
  EXPECT_EQ(of_prompt, stats.kv_used_bytes);
  std::vector<int32_t> ids(40);
  for (int i = 0; i < 24; ++i) {
    for (uint32_t s = 0; s < 40; ++s) ids[s] = static_cast<int32_t>((s + 3 * i) % kVocab);
    ASSERT_EQ(ARN_OK, arn_session_step(session.get(), all.data(), ids.data(), 40))
        << arn_session_last_error(session.get());
  }
  ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
  EXPECT_EQ(of_prompt / 125 * (125 + 40 * 3), stats.kv_used_bytes);
  // No page is free.
  EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_step(session.get(), all.data(), ids.data(), 1));
  EXPECT_NE(std::string::npos, std::string(arn_session_last_error(session.get())).find("1960"));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 39));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  EXPECT_EQ(ARN_OK, arn_session_step(session.get(), all.data(), ids.data(), 1));
}

TEST(Sequences_Errors, BadNumbers_AreNamed) {
  const BundleBytes bytes = Bundle({{}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(ARN_BACKEND_CPU, 2));
  ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), 0, SomeIds(4, kVocab)));
  int32_t ids[3] = {1, 1, 1};
  const uint32_t twice[] = {0, 0}, missing[] = {2}, empty[] = {0, 1}, three[] = {0, 1, 2};
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_select(session.get(), 2));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_fork(session.get(), 0, 0));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_step(session.get(), twice, ids, 2));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_step(session.get(), missing, ids, 1));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_step(session.get(), three, ids, 3));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_step(session.get(), three, ids, 0));
  EXPECT_EQ(ARN_BAD_STATE, arn_session_decode_batch(session.get(), empty, 2, ids));
  EXPECT_NE(std::string::npos,
            std::string(arn_session_last_error(session.get())).find("sequence 1"));
  ids[0] = static_cast<int32_t>(kVocab);
  EXPECT_EQ(ARN_BAD_TOKEN, arn_session_step(session.get(), empty, ids, 2));
  EXPECT_EQ(0u, arn_session_selected(session.get()));
  EXPECT_EQ(4u, arn_session_length(session.get()));

  arn_session_options options = Options(ARN_BACKEND_CPU, 2);
  options.kv_tokens = 95;
  arn_session* none = nullptr;
  char error[256];
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_create(model.get(), &options, nullptr, 0, error, sizeof error, &none));
  EXPECT_NE(std::string::npos, std::string(error).find("kv_tokens is 95"));
}

}  // namespace
}  // namespace arn::test
