// Beam search in sessions: the sequences of the beams hold the search's tokens, and memory grows
// only by their tails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

using Ids = std::vector<int32_t>;
constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t sequences) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
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

arn_beam_options Beams(uint32_t beams, uint32_t max_tokens) {
  arn_beam_options options = ARN_BEAM_OPTIONS_INIT;
  options.num_beams = beams;
  options.num_return_sequences = beams;
  options.max_tokens = max_tokens;
  options.ignore_eos = 1;
  return options;
}

struct Found {
  double score = 0;
  Ids ids;
};

std::vector<Found> Search(arn_session* session, const arn_beam_options& options,
                          arn_beam_result* out_result = nullptr) {
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_session_beam_search(session, &options, &result))
      << arn_session_last_error(session);
  std::vector<Found> found(result.n_sequences);
  for (uint32_t i = 0; i < result.n_sequences; ++i) {
    Ids ids(options.max_tokens);
    size_t n = 0;
    float score = 0;
    EXPECT_EQ(ARN_OK, arn_session_beam(session, i, ids.data(), ids.size(), &n, &score));
    ids.resize(n);
    found[i] = {static_cast<double>(score), ids};
  }
  if (out_result != nullptr) *out_result = result;
  return found;
}

// Returns the log-probabilities after `ids`, prefilled into an empty sequence.
std::vector<double> LogProbabilities(arn_session* session, const Ids& ids) {
  EXPECT_EQ(ARN_OK, arn_session_reset(session));
  EXPECT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()));
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits));
  std::vector<double> out(logits, logits + kVocab);
  double sum = 0;
  for (double x : out) sum += std::exp(x);
  for (double& x : out) x -= std::log(sum);
  return out;
}

// Naive beam search of one group without stop tokens: keeps the best sums.
std::vector<Found> Plain(arn_session* truth, const Ids& prompt, uint32_t beams, uint32_t steps) {
  std::vector<Found> running = {{0, {}}};
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<Found> next;
    for (const Found& beam : running) {
      Ids all = prompt;
      all.insert(all.end(), beam.ids.begin(), beam.ids.end());
      const std::vector<double> row = LogProbabilities(truth, all);
      for (uint32_t id = 0; id < kVocab; ++id) {
        next.push_back({beam.score + row[id], beam.ids});
        next.back().ids.push_back(static_cast<int32_t>(id));
      }
    }
    std::stable_sort(next.begin(), next.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
    next.resize(beams);
    running = next;
  }
  return running;
}

class BeamsTest : public testing::TestWithParam<std::vector<TinyLayer>> {};

TEST_P(BeamsTest, Search_EqualsRecomputingEveryBeam) {
  const BundleBytes bytes = Bundle(GetParam());
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr truth = NewSession(model.get(), Options(1));
  const Ids prompt = SomeIds(29, kVocab);
  const std::vector<Found> wanted = Plain(truth.get(), prompt, 5, 24);
  // The prompt may be in a beam's sequence or in one after the beams.
  for (const uint32_t selected : {0u, 3u, 5u}) {
    for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      for (const uint32_t no_cache : {0u, 1u}) {
        if (no_cache == 1 && selected != 3) continue;
        SCOPED_TRACE(testing::Message() << selected << " backend " << backend << no_cache);
        arn_session_options options = Options(6);
        options.backend = backend;
        options.no_cache = no_cache;
        const SessionPtr session = NewSession(model.get(), options);
        ASSERT_EQ(ARN_OK, arn_session_select(session.get(), selected));
        ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
        arn_beam_result result = ARN_BEAM_RESULT_INIT;
        const std::vector<Found> found = Search(session.get(), Beams(5, 24), &result);
        EXPECT_EQ(24u, result.n_steps);
        ASSERT_EQ(5u, found.size());
        for (size_t i = 0; i < 5; ++i) {
          EXPECT_EQ(wanted[i].ids, found[i].ids) << i;
          EXPECT_NEAR(wanted[i].score / 24, found[i].score, 1e-4) << i;
        }
        EXPECT_EQ(selected == 5 ? 29u : 0u, arn_session_length(session.get()));
        arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
        if (selected == 5) {
          // A prompt outside the beams stays and can be searched again.
          EXPECT_EQ(found[0].ids, Search(session.get(), Beams(5, 24))[0].ids);
          ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
        }
        ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
        EXPECT_EQ(0u, stats.kv_used_bytes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, BeamsTest,
                         testing::Values(std::vector<TinyLayer>{{}, {}},
                                         std::vector<TinyLayer>{{9}, {}, {9}},
                                         std::vector<TinyLayer>{{0, 16}, {}, {0, 0, 1}},
                                         StateShapes()[0].layers, StateShapes()[3].layers));

TEST(Beams_One, OneBeamInOneSequence_IsGreedy) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(1));
  const Ids prompt = SomeIds(7, kVocab);
  const Ids wanted = Greedy(session.get(), prompt, 20);
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  EXPECT_EQ(wanted, Search(session.get(), Beams(1, 20)).at(0).ids);
}

// Forty groups of one beam share a long prompt: only the tails need more pages.
TEST(Beams_Memory, FortyGroupsOnALongPrompt_CostTheirTails) {
  constexpr uint32_t kBeams = 40, kNew = 23;
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = 1100;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  for (const uint32_t prompt_tokens : {1000u, 1003u}) {
    arn_session_options options = Options(kBeams);
    options.context_tokens = 1040;
    options.kv_tokens = 1000 + kBeams * 32;
    const SessionPtr session = NewSession(model.get(), options);
    const Ids prompt = SomeIds(prompt_tokens, kVocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256];
    ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &options, error, sizeof error, &plan));
    const uint64_t ideal = plan.kv_bytes_per_token * (prompt_tokens + uint64_t{kBeams} * kNew);
    arn_beam_options beams = Beams(kBeams, kNew);
    beams.num_beam_groups = kBeams;
    beams.diversity_penalty = 1.5f;
    arn_beam_result result = ARN_BEAM_RESULT_INIT;
    const std::vector<Found> found = Search(session.get(), beams, &result);
    ASSERT_EQ(size_t{kBeams}, found.size());
    EXPECT_EQ(kNew, result.n_steps);
    std::vector<Ids> different;
    for (const Found& f : found) different.push_back(f.ids);
    std::sort(different.begin(), different.end());
    different.erase(std::unique(different.begin(), different.end()), different.end());
    EXPECT_GT(different.size(), 30u);
    const double part = static_cast<double>(result.kv_peak_bytes) / static_cast<double>(ideal);
    std::printf("prompt %u: peak %llu bytes, prompt and tails %llu bytes, ratio %.4f\n",
                prompt_tokens, static_cast<unsigned long long>(result.kv_peak_bytes),
                static_cast<unsigned long long>(ideal), part);
    RecordProperty("kv_peak_bytes", std::to_string(result.kv_peak_bytes));
    RecordProperty("prompt_and_tails_bytes", std::to_string(ideal));
    // The last token of a beam is not run. If the prompt ends within a page, each beam copies that
    // page.
    const uint64_t page_bytes = 8 * plan.kv_bytes_per_token;
    EXPECT_EQ((125 + kBeams * ((prompt_tokens - 1000 + kNew - 1 + 7) / 8)) * page_bytes,
              result.kv_peak_bytes);
    if (prompt_tokens == 1000) {
      EXPECT_LE(part, 1.15);
    }
  }
}

TEST(Beams_Errors, WhatCannotBeSearched_ChangesNothing) {
  const BundleBytes bytes = Bundle({{}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(4));
  const auto fails = [&](arn_status status, const arn_beam_options& options, const char* words) {
    arn_beam_result result = ARN_BEAM_RESULT_INIT;
    EXPECT_EQ(status, arn_session_beam_search(session.get(), &options, &result)) << words;
    EXPECT_EQ(0u, result.n_sequences);
    EXPECT_NE(std::string::npos, std::string(arn_session_last_error(session.get())).find(words))
        << arn_session_last_error(session.get());
  };
  fails(ARN_BAD_STATE, Beams(2, 4), "prefill");
  const Ids prompt = SomeIds(90, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  fails(ARN_BAD_ARGUMENT, Beams(5, 4), "max_sequences 4");
  fails(ARN_CONTEXT_FULL, Beams(2, 8), "8 tokens after 90");
  arn_beam_options options = Beams(2, 4);
  options.early_stopping = 3;
  fails(ARN_UNSUPPORTED, options, "early_stopping 3");
  options = Beams(2, 4);
  options.num_beam_groups = 2;
  options.diversity_penalty = -1.0f;
  fails(ARN_BAD_ARGUMENT, options, "diversity_penalty");
  options = Beams(2, 4);
  Ids ends;
  for (int32_t id = 0; id < 17; ++id) ends.push_back(id);
  options.ignore_eos = 0;
  options.extra_eos_ids = ends.data();
  options.n_extra_eos_ids = ends.size();
  fails(ARN_UNSUPPORTED, options, "at most 16");
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), 5));
  fails(ARN_BAD_STATE, Beams(2, 4), "sequence 0 has 90 tokens");
  EXPECT_EQ(5u, arn_session_length(session.get()));
  int32_t id = 0;
  size_t n = 0;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_beam(session.get(), 0, &id, 1, &n, nullptr));
}

TEST(Beams_Ends, CancelAndSmallBuffers) {
  const BundleBytes bytes = Bundle({{}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(3));
  const Ids prompt = SomeIds(9, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  // max_tokens 0 is the whole context.
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  const arn_beam_options whole = Beams(3, 0);
  ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &whole, &result));
  EXPECT_EQ(96u - 9 + 1, result.n_steps);
  std::vector<int32_t> ids(88, -7);
  size_t n = 0;
  float score = 0;
  EXPECT_EQ(ARN_BUFFER_TOO_SMALL, arn_session_beam(session.get(), 2, ids.data(), 87, &n, &score));
  EXPECT_EQ(88u, n);
  EXPECT_LT(score, 0.0f);
  EXPECT_EQ(-7, ids[0]);
  EXPECT_EQ(ARN_OK, arn_session_beam(session.get(), 2, ids.data(), 88, &n, nullptr));

  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  arn_session_cancel(session.get());
  EXPECT_EQ(ARN_CANCELLED, arn_session_beam_search(session.get(), &whole, &result));
  EXPECT_EQ(0u, result.n_sequences);
  for (uint32_t s = 0; s < 3; ++s) {
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    EXPECT_EQ(0u, arn_session_length(session.get()));
  }
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_beam(session.get(), 0, ids.data(), 88, &n, nullptr));
}

}  // namespace
}  // namespace arn::test
