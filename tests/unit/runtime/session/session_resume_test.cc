// Continuing after a cancelled call, a rewind, or a full context gives the same tokens as without
// it.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "arenite/observe.h"
#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
// Runs of one row and of several sum in another order.
constexpr double kRounding = 3e-5;

arn_session_options Options(uint32_t sequences = 1, uint32_t context = 96) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.n_threads = 1;
  options.context_tokens = context;
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

void Sample(arn_session* session, uint64_t seed) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = seed == 0 ? 0.0f : 1.0f;
  sampling.seed = seed;
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
}

void Prefill(arn_session* session, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
      << arn_session_last_error(session);
}

// Cancels its session at this call, counted from 1.
struct Canceller {
  arn_session* session = nullptr;
  size_t at = 0;
  size_t n_calls = 0;
  std::vector<int32_t> ids;

  static int32_t OnToken(void* user, int32_t id, const char*, size_t) {
    auto& self = *static_cast<Canceller*>(user);
    self.ids.push_back(id);
    if (++self.n_calls == self.at) arn_session_cancel(self.session);
    return 0;
  }
  static void OnMatmul(void* user, const char*, const float*, size_t, size_t, const float*,
                       size_t) {
    auto& self = *static_cast<Canceller*>(user);
    if (++self.n_calls == self.at) arn_session_cancel(self.session);
  }
};

struct Generated {
  arn_status status = ARN_OK;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  std::vector<int32_t> ids;
};

// max_tokens 0: until the context is full. cancel_at 0: never.
Generated Generate(arn_session* session, uint32_t max_tokens, size_t cancel_at = 0) {
  Generated out;
  Canceller canceller{session, cancel_at, 0, {}};
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = max_tokens;
  options.ignore_eos = 1;
  options.callback = Canceller::OnToken;
  options.user = &canceller;
  out.status = arn_session_generate(session, &options, &out.result);
  out.ids = canceller.ids;
  return out;
}

class ResumeTest : public testing::TestWithParam<Shape> {
 protected:
  ResumeTest() : bytes_(Bundle(GetParam().layers)), model_(OpenBytes(bytes_)) {}
  SessionPtr New(const arn_session_options& options) { return NewSession(model_.get(), options); }

  BundleBytes bytes_;
  ModelPtr model_;
};

TEST_P(ResumeTest, CancelledGenerate_GoesOnAsIfItHadNotBeen) {
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    for (const uint64_t seed : {0u, 5u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", seed " << seed);
      arn_session_options options = Options();
      options.backend = backend;
      const SessionPtr whole = New(options), parts = New(options);
      for (arn_session* session : {whole.get(), parts.get()}) {
        ASSERT_NO_FATAL_FAILURE(Sample(session, seed));
        ASSERT_NO_FATAL_FAILURE(Prefill(session, SomeIds(21, kVocab)));
      }
      const Generated expected = Generate(whole.get(), 24);
      uint32_t n = 0;
      std::vector<int32_t> ids;
      for (const uint32_t cancel_at : {1u, 4u, 9u, 1u}) {
        const Generated some = Generate(parts.get(), 0, cancel_at);
        ASSERT_EQ(ARN_CANCELLED, some.status);
        EXPECT_EQ(uint32_t{ARN_FINISH_CANCELLED}, some.result.finish);
        ASSERT_EQ(cancel_at, some.result.n_tokens + 1);  // the last shown token did not run
        n += some.result.n_tokens;
        ids.insert(ids.end(), some.ids.begin(), some.ids.end() - 1);
        EXPECT_EQ(21 + n, arn_session_length(parts.get()));
      }
      const Generated rest = Generate(parts.get(), 24 - n);
      EXPECT_EQ(ARN_OK, rest.status);
      ids.insert(ids.end(), rest.ids.begin(), rest.ids.end());
      EXPECT_EQ(expected.ids, ids);
      EXPECT_EQ(TokensOf(whole.get()), TokensOf(parts.get()));
      EXPECT_EQ(0.0, LogitDifference(whole.get(), parts.get(), kVocab));
      arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
      ASSERT_EQ(ARN_OK, arn_session_stats(parts.get(), &stats));
      EXPECT_EQ(24u, stats.decode_tokens) << "none was computed twice";
      EXPECT_EQ(21u, stats.prefill_tokens);
    }
  }
}

TEST_P(ResumeTest, CancelledDecodeAndBatch_LeaveLogitsAndRandomNumbers) {
  for (const bool has_cache : {true, false}) {
    arn_session_options options = Options(3);
    options.no_cache = has_cache ? 0 : 1;
    const SessionPtr session = New(options), truth = New(options);
    for (arn_session* s : {session.get(), truth.get()}) {
      for (uint32_t i = 0; i < 3; ++i) {
        ASSERT_EQ(ARN_OK, arn_session_select(s, i));
        ASSERT_NO_FATAL_FAILURE(Sample(s, 7 + i));
        ASSERT_NO_FATAL_FAILURE(Prefill(s, SomeIds(9 + i, kVocab)));
      }
    }
    const uint32_t all[3] = {0, 1, 2};
    for (int step = 0; step < 6; ++step) {
      int32_t ids[3], expected[3];
      arn_session_cancel(session.get());
      ASSERT_EQ(ARN_CANCELLED, arn_session_decode_batch(session.get(), all, 3, ids));
      arn_session_cancel(session.get());
      ASSERT_EQ(ARN_CANCELLED, arn_session_decode(session.get(), ids));
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), all, 3, ids))
          << arn_session_last_error(session.get());
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(truth.get(), all, 3, expected));
      EXPECT_EQ(std::vector<int32_t>(expected, expected + 3), std::vector<int32_t>(ids, ids + 3));
    }
    EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
  }
}

// After a prefill cancelled in its second chunk, the logits are those after the first chunk.
TEST_P(ResumeTest, CancelledPrefill_GeneratesAfterWhatWasFinished) {
  const SessionPtr session = New(Options()), truth = New(Options());
  const std::vector<int32_t> ids = SomeIds(40, kVocab);
  Canceller counter{session.get(), 0, 0, {}};
  ASSERT_EQ(ARN_OK, arn_session_observe_matmuls(session.get(), Canceller::OnMatmul, &counter));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), 16));
  counter.at = counter.n_calls + counter.n_calls / 2;
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  counter.n_calls = 0;
  ASSERT_EQ(ARN_CANCELLED, arn_session_prefill(session.get(), ids.data(), ids.size()));
  ASSERT_EQ(16u, arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_observe_matmuls(session.get(), nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(
      Prefill(truth.get(), std::vector<int32_t>(ids.begin(), ids.begin() + 16)));
  EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), kRounding);
  EXPECT_EQ(16u, arn_session_length(session.get()));
  EXPECT_EQ(Decode(truth.get(), 9), Decode(session.get(), 9));
}

// After a rewind to any valid position, generation continues, or fails with a reason and changes
// nothing. A fork that shares the pages is unaffected.
TEST_P(ResumeTest, Rewound_GeneratesFromThere) {
  const SessionPtr session = New(Options(2)), truth = New(Options(2));
  const std::vector<int32_t> ids = SomeIds(35, kVocab);
  for (arn_session* s : {session.get(), truth.get()}) ASSERT_NO_FATAL_FAILURE(Prefill(s, ids));
  for (uint32_t position = 35; position-- > 1;) {
    SCOPED_TRACE(position);
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
    const uint32_t first = arn_session_first_rewind_position(session.get());
    if (position < first) break;
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), position));
    int32_t id = 0;
    if (position == first && first > 0) {
      EXPECT_EQ(ARN_BAD_STATE, arn_session_decode(session.get(), &id));
      EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "cannot run again"))
          << arn_session_last_error(session.get());
      EXPECT_EQ(position, arn_session_length(session.get()));
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &ids[position], 1));
      continue;
    }
    ASSERT_EQ(ARN_OK, arn_session_select(truth.get(), 1));
    ASSERT_EQ(ARN_OK, arn_session_reset(truth.get()));
    ASSERT_NO_FATAL_FAILURE(
        Prefill(truth.get(), std::vector<int32_t>(ids.begin(), ids.begin() + position)));
    EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), kRounding);
    EXPECT_EQ(position, arn_session_length(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    EXPECT_EQ(position + 1, arn_session_length(session.get()));
  }
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_EQ(ARN_OK, arn_session_select(truth.get(), 0));
  EXPECT_EQ(Decode(truth.get(), 5), Decode(session.get(), 5));
  EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
}

// The token after a full context: T + new - 1 <= context, as in nanoGPT and transformers.
TEST_P(ResumeTest, FullContext_GivesTheTokenBehindIt) {
  constexpr uint32_t kContext = 24, kPrompt = 17, kNew = kContext - kPrompt + 1;
  const SessionPtr larger = New(Options(1, 64));
  ASSERT_NO_FATAL_FAILURE(Prefill(larger.get(), SomeIds(kPrompt, kVocab)));
  const std::vector<int32_t> expected = Decode(larger.get(), kNew);

  for (const bool has_cache : {true, false}) {
    arn_session_options options = Options(1, kContext);
    options.no_cache = has_cache ? 0 : 1;
    const SessionPtr session = New(options);
    const auto begin = [&] {
      ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
      ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), SomeIds(kPrompt, kVocab)));
    };
    const auto expect_end = [&] {
      EXPECT_EQ(kContext, arn_session_length(session.get()));
      int32_t id = -1;
      EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_decode(session.get(), &id));
      const Generated none = Generate(session.get(), 0);
      EXPECT_EQ(ARN_OK, none.status);
      EXPECT_EQ(0u, none.result.n_tokens);
      EXPECT_EQ(uint32_t{ARN_FINISH_CONTEXT}, none.result.finish);
    };
    ASSERT_NO_FATAL_FAILURE(begin());
    EXPECT_EQ(expected, Decode(session.get(), kNew));
    expect_end();

    ASSERT_NO_FATAL_FAILURE(begin());
    const Generated all = Generate(session.get(), 0);
    EXPECT_EQ(ARN_OK, all.status);
    EXPECT_EQ(uint32_t{ARN_FINISH_CONTEXT}, all.result.finish);
    EXPECT_EQ(kNew, all.result.n_tokens);
    EXPECT_EQ(expected, all.ids);
    expect_end();
    if (has_cache) {  // a saved state includes the end
      const std::vector<uint8_t> state = Save(session.get());
      ASSERT_NO_FATAL_FAILURE(begin());
      ASSERT_EQ(ARN_OK, Restore(session.get(), state));
      expect_end();
    }

    ASSERT_NO_FATAL_FAILURE(begin());
    EXPECT_EQ(uint32_t{ARN_FINISH_LENGTH}, Generate(session.get(), kNew).result.finish);
    expect_end();

    // Cancelled at the last token, which the next call repeats.
    ASSERT_NO_FATAL_FAILURE(begin());
    const Generated cut = Generate(session.get(), 0, kNew);
    EXPECT_EQ(ARN_CANCELLED, cut.status);
    EXPECT_EQ(kNew - 1, cut.result.n_tokens);
    EXPECT_EQ(std::vector<int32_t>{expected.back()}, Generate(session.get(), 0).ids);
    expect_end();
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, ResumeTest,
                         testing::ValuesIn(Join({Shapes(), StateShapes(), LinearShapes(),
                                                 WidthShapes(), StateWidthShapes()})),
                         ShapeName);

TEST(Resume_FullContext, Batch_GivesEachItsLast) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(2, 16));
  const SessionPtr larger = NewSession(model.get(), Options(2, 64));
  std::vector<int32_t> expected[2], found[2];
  for (arn_session* s : {session.get(), larger.get()}) {
    for (uint32_t i = 0; i < 2; ++i) {
      ASSERT_EQ(ARN_OK, arn_session_select(s, i));
      ASSERT_NO_FATAL_FAILURE(Prefill(s, SomeIds(13 + i, kVocab)));
    }
  }
  const uint32_t both[2] = {0, 1};
  for (int step = 0; step < 3; ++step) {  // sequence 1 is full one step earlier
    int32_t ids[2];
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(larger.get(), both, 2, ids));
    for (int i = 0; i < 2; ++i) expected[i].push_back(ids[i]);
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 2, ids))
        << arn_session_last_error(session.get());
    for (int i = 0; i < 2; ++i) found[i].push_back(ids[i]);
  }
  EXPECT_EQ(expected[0], found[0]);
  EXPECT_EQ(expected[1], found[1]);
  int32_t ids[2];
  EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_decode_batch(session.get(), both, 2, ids));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_EQ(16u, arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 1, ids)) << "nothing had changed";
  ASSERT_EQ(ARN_OK, arn_session_decode_batch(larger.get(), both, 1, found[0].data()));
  EXPECT_EQ(found[0][0], ids[0]);
}

TEST(Resume_FullContext, OtherRules) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(1, 16);
  options.overflow = ARN_OVERFLOW_ERROR;
  const SessionPtr strict = NewSession(model.get(), options);
  ASSERT_NO_FATAL_FAILURE(Prefill(strict.get(), SomeIds(14, kVocab)));
  const Generated all = Generate(strict.get(), 0);
  EXPECT_EQ(ARN_CONTEXT_FULL, all.status);
  EXPECT_EQ(3u, all.result.n_tokens);
  EXPECT_EQ(ARN_CONTEXT_FULL, Generate(strict.get(), 0).status);
  // After a rewind by one, the last two tokens come again.
  ASSERT_EQ(ARN_OK, arn_session_rewind(strict.get(), 15));
  const Generated again = Generate(strict.get(), 2);
  EXPECT_EQ(ARN_OK, again.status) << arn_session_last_error(strict.get());
  EXPECT_EQ(std::vector<int32_t>(all.ids.begin() + 1, all.ids.end()), again.ids);

  options.overflow = ARN_OVERFLOW_SHIFT;
  const SessionPtr shifting = NewSession(model.get(), options);
  ASSERT_NO_FATAL_FAILURE(Prefill(shifting.get(), SomeIds(14, kVocab)));
  EXPECT_EQ(30u, Generate(shifting.get(), 30).result.n_tokens);
}

// The last row of a chunk's logits determines the next token.
TEST(Resume_PrefillLogits, AreFollowedByTokens) {
  const BundleBytes bytes = Bundle(StateShapes()[2].layers);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options();
  options.all_logits = 1;
  const SessionPtr session = NewSession(model.get(), options);
  const SessionPtr truth = NewSession(model.get(), Options());
  const std::vector<int32_t> ids = SomeIds(13, kVocab);
  const float* logits = nullptr;
  ASSERT_EQ(ARN_OK, arn_session_prefill_logits(session.get(), ids.data(), ids.size(), &logits));
  ASSERT_NO_FATAL_FAILURE(Prefill(truth.get(), ids));
  EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), kRounding);
  EXPECT_EQ(Decode(truth.get(), 5), Decode(session.get(), 5));
}

// A prompt outside the beams stays after a cancelled search and after a rewind.
TEST(Resume_Beams, CancelledOrRewound_SearchTheSame) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(3));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
  ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), SomeIds(11, kVocab)));
  arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
  beams.num_beams = 2;
  beams.max_tokens = 8;
  beams.ignore_eos = 1;
  const auto search = [&] {
    EXPECT_EQ(ARN_OK, arn_session_beam_search(session.get(), &beams, nullptr))
        << arn_session_last_error(session.get());
    std::vector<int32_t> ids(8);
    size_t n = 0;
    EXPECT_EQ(ARN_OK, arn_session_beam(session.get(), 0, ids.data(), ids.size(), &n, nullptr));
    return ids;
  };
  const std::vector<int32_t> expected = search();
  arn_session_cancel(session.get());
  EXPECT_EQ(ARN_CANCELLED, arn_session_beam_search(session.get(), &beams, nullptr));
  EXPECT_EQ(expected, search());
  int32_t id = 0;
  ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 11));
  EXPECT_EQ(expected, search());
}

// Two sequences share all pages and none is free: the last token cannot be run again without
// overwriting the shared keys.
TEST(Resume_SharedPool, NoFreePage_SaysSoAndChangesNothing) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(2, 32);
  options.kv_tokens = 32;
  const SessionPtr session = NewSession(model.get(), options);
  ASSERT_NO_FATAL_FAILURE(Prefill(session.get(), SomeIds(32, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  for (const uint32_t position : {31u, 25u}) {  // within a page, and at a page start
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), position));
    int32_t id = 0;
    EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_decode(session.get(), &id));
    EXPECT_EQ(position, arn_session_length(session.get()));
  }
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  const SessionPtr truth = NewSession(model.get(), options);
  ASSERT_NO_FATAL_FAILURE(Prefill(truth.get(), SomeIds(25, kVocab)));
  EXPECT_EQ(Decode(truth.get(), 5), Decode(session.get(), 5));
}

}  // namespace
}  // namespace arn::test
