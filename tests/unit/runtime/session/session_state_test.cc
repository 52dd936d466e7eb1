// A restored session continues like the saved one, for every layer type.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sampling/random.h"
#include "tests/support/layer_shapes.h"
#include "tests/support/session_support.h"
#include "tests/support/state_bytes.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kKvTypes[] = {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2};

arn_session_options Options(uint32_t kv_type, uint32_t sequences = 1) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv_type;
  options.n_threads = 1;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 13;
  options.max_sequences = sequences;
  if (kv_type == ARN_KV_INT4 || kv_type == ARN_KV_INT2) options.kv_residual = 16;
  return options;
}

arn_sampling Sampling(uint64_t seed) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 0.9f;
  sampling.top_k = 30;
  sampling.top_p = 0.95f;
  sampling.seed = seed;
  return sampling;
}

void Prefill(arn_session* session, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
      << arn_session_last_error(session);
}

class SessionStateTest : public testing::TestWithParam<Shape> {
 protected:
  SessionStateTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.max_context = 512;
    bundle.layer_kinds = GetParam().layers;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

TEST_P(SessionStateTest, RestoredSession_SamplesTheSameTokens) {
  for (uint32_t kv : kKvTypes) {
    for (uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      for (uint32_t n : {1u, 8u, 16u, 33u, 50u}) {
        SCOPED_TRACE(testing::Message() << "kv " << kv << " backend " << backend << " n " << n);
        arn_session_options options = Options(kv);
        options.backend = backend;
        const SessionPtr saved = NewSession(model_.get(), options);
        const arn_sampling sampling = Sampling(n);
        ASSERT_EQ(ARN_OK, arn_session_set_sampling(saved.get(), &sampling));
        Prefill(saved.get(), SomeIds(n, kVocab));
        Decode(saved.get(), 9);
        const std::vector<uint8_t> state = Save(saved.get());
        const std::vector<int32_t> expected = Decode(saved.get(), 40);

        const SessionPtr restored = NewSession(model_.get(), options);
        Prefill(restored.get(), SomeIds(70, 17));  // restore replaces these
        ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
        EXPECT_EQ(n + 9, arn_session_length(restored.get()));
        EXPECT_EQ(expected, Decode(restored.get(), 40));
        EXPECT_EQ(TokensOf(saved.get()), TokensOf(restored.get()));
      }
    }
  }
}

// Saving right after a restore gives the same bytes.
TEST_P(SessionStateTest, SaveAfterRestore_TheSameBytes) {
  for (uint32_t kv : kKvTypes) {
    SCOPED_TRACE(kv);
    const SessionPtr saved = NewSession(model_.get(), Options(kv, 4));
    Prefill(saved.get(), SomeIds(37, kVocab));
    ASSERT_EQ(ARN_OK, arn_session_fork(saved.get(), 0, 2));
    ASSERT_EQ(ARN_OK, arn_session_select(saved.get(), 2));
    Decode(saved.get(), 3);
    const std::vector<uint8_t> state = Save(saved.get());
    const SessionPtr restored = NewSession(model_.get(), Options(kv, 4));
    ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
    EXPECT_EQ(state, Save(restored.get()));
  }
}

TEST_P(SessionStateTest, Forks_GoOnTheirOwnWays) {
  for (uint32_t kv : kKvTypes) {
    const SessionPtr saved = NewSession(model_.get(), Options(kv, 4));
    Prefill(saved.get(), SomeIds(21, kVocab));
    for (uint32_t to : {1u, 3u}) {
      ASSERT_EQ(ARN_OK, arn_session_fork(saved.get(), 0, to));
      ASSERT_EQ(ARN_OK, arn_session_select(saved.get(), to));
      const arn_sampling sampling = Sampling(to);
      ASSERT_EQ(ARN_OK, arn_session_set_sampling(saved.get(), &sampling));
    }
    Decode(saved.get(), 5);  // sequence 3 diverges
    const std::vector<uint8_t> state = Save(saved.get());
    // Other session options; sequence 2 stays empty.
    arn_session_options options = Options(kv, 5);
    options.context_tokens = 96;
    options.prefill_chunk = 32;
    options.n_threads = 2;
    const SessionPtr restored = NewSession(model_.get(), options);
    ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
    EXPECT_EQ(3u, arn_session_selected(restored.get()));
    // Shared pages stay shared: no more are in use than before.
    arn_session_stats_data before = ARN_SESSION_STATS_INIT, after = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(saved.get(), &before));
    ASSERT_EQ(ARN_OK, arn_session_stats(restored.get(), &after));
    EXPECT_LE(after.kv_used_bytes, before.kv_used_bytes);
    for (uint32_t sequence : {0u, 1u, 2u, 3u}) {
      SCOPED_TRACE(sequence);
      for (arn_session* s : {saved.get(), restored.get()}) {
        ASSERT_EQ(ARN_OK, arn_session_select(s, sequence));
      }
      ASSERT_EQ(TokensOf(saved.get()), TokensOf(restored.get()));
      if (sequence == 2) {
        EXPECT_EQ(0u, arn_session_length(restored.get()));
      } else {
        EXPECT_EQ(Decode(saved.get(), 20), Decode(restored.get(), 20));
      }
    }
    // The pools' reference counts are right: after a reset a whole context fits again.
    for (uint32_t sequence = 0; sequence < 5; ++sequence) {
      ASSERT_EQ(ARN_OK, arn_session_select(restored.get(), sequence));
      ASSERT_EQ(ARN_OK, arn_session_reset(restored.get()));
    }
    ASSERT_EQ(ARN_OK, arn_session_stats(restored.get(), &after));
    EXPECT_EQ(0u, after.kv_used_bytes);
    for (uint32_t sequence = 0; sequence < 5; ++sequence) {
      ASSERT_EQ(ARN_OK, arn_session_select(restored.get(), sequence));
      Prefill(restored.get(), SomeIds(96, kVocab));
    }
  }
}

TEST_P(SessionStateTest, AfterAShift_GoesOnTheSame) {
  if (HasState(GetParam())) return;  // cannot shift: session_slots_test.cc
  for (uint32_t kv : {ARN_KV_F32, ARN_KV_INT4}) {
    SCOPED_TRACE(kv);
    arn_session_options options = Options(kv);
    options.overflow = ARN_OVERFLOW_SHIFT;
    options.pinned_tokens = 4;
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    // Chunks of 11 and pages of 8 shift by at least 88 tokens.
    if (arn_session_plan(model_.get(), &options, nullptr, 0, &plan) != ARN_OK) {
      options.context_tokens = 280;
    }
    const SessionPtr saved = NewSession(model_.get(), options);
    ASSERT_NE(nullptr, saved);
    Prefill(saved.get(), SomeIds(options.context_tokens - 8, kVocab));
    for (int round = 0; round < 6; ++round) {
      Decode(saved.get(), 7);
      const std::vector<uint8_t> state = Save(saved.get());
      const SessionPtr restored = NewSession(model_.get(), options);
      ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
      // Decodes past the next shift.
      const SessionPtr again = NewSession(model_.get(), options);
      ASSERT_EQ(ARN_OK, Restore(again.get(), state));
      EXPECT_EQ(Decode(again.get(), 60), Decode(restored.get(), 60));
      const SessionPtr control = NewSession(model_.get(), options);
      ASSERT_EQ(ARN_OK, Restore(control.get(), state));
      EXPECT_EQ(Decode(control.get(), 7), Decode(saved.get(), 7));
    }
  }
}

// To the first position of the restored session, and into its middle.
TEST_P(SessionStateTest, RewindAfterRestore_ThenTheSameTokens) {
  for (uint32_t kv : kKvTypes) {
    for (bool is_middle : {false, true}) {
      SCOPED_TRACE(testing::Message() << "kv " << kv << " middle " << is_middle);
      const SessionPtr saved = NewSession(model_.get(), Options(kv));
      Prefill(saved.get(), SomeIds(60, kVocab));
      const SessionPtr restored = NewSession(model_.get(), Options(kv));
      ASSERT_EQ(ARN_OK, Restore(restored.get(), Save(saved.get())));
      const uint32_t first = arn_session_first_rewind_position(restored.get());
      EXPECT_LE(arn_session_first_rewind_position(saved.get()), first);
      for (arn_session* s : {saved.get(), restored.get()}) {
        ASSERT_EQ(ARN_OK, arn_session_rewind(s, is_middle ? (first + 60) / 2 : first));
        Prefill(s, SomeIds(20, 23));
      }
      EXPECT_EQ(Decode(saved.get(), 20), Decode(restored.get(), 20));
    }
  }
}

// The beams diverge from the restored pages and logits: ids and scores equal those of the saved
// session.
TEST_P(SessionStateTest, BeamSearchAfterRestore_FindsTheSame) {
  constexpr uint32_t kBeams = 4, kTokens = 24;
  arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
  beams.num_beams = kBeams;
  beams.num_return_sequences = kBeams;
  beams.max_tokens = kTokens;
  beams.ignore_eos = 1;
  for (uint32_t kv : kKvTypes) {
    SCOPED_TRACE(kv);
    const SessionPtr saved = NewSession(model_.get(), Options(kv, kBeams));
    Prefill(saved.get(), SomeIds(45, kVocab));
    const SessionPtr restored = NewSession(model_.get(), Options(kv, kBeams));
    ASSERT_EQ(ARN_OK, Restore(restored.get(), Save(saved.get())));
    std::vector<int32_t> ids[2];
    std::vector<float> scores[2];
    arn_session* both[2] = {saved.get(), restored.get()};
    for (int i = 0; i < 2; ++i) {
      arn_beam_result result = ARN_BEAM_RESULT_INIT;
      ASSERT_EQ(ARN_OK, arn_session_beam_search(both[i], &beams, &result))
          << arn_session_last_error(both[i]);
      ASSERT_EQ(kBeams, result.n_sequences);
      ids[i].resize(kBeams * kTokens);
      scores[i].resize(kBeams);
      for (uint32_t b = 0; b < kBeams; ++b) {
        size_t n = 0;
        ASSERT_EQ(ARN_OK, arn_session_beam(both[i], b, ids[i].data() + b * kTokens, kTokens, &n,
                                           &scores[i][b]));
        EXPECT_EQ(kTokens, n);
      }
    }
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(scores[0], scores[1]);
    // The state after the search is saved and restored too.
    const std::vector<uint8_t> after = Save(saved.get());
    ASSERT_EQ(ARN_OK, Restore(restored.get(), after));
    EXPECT_EQ(after, Save(restored.get()));
  }
}

// After any operations the saved state is accepted, and all sequences continue the same.
TEST_P(SessionStateTest, AfterAnything_IsRestored) {
  constexpr uint32_t kSequences = 4;
  for (uint32_t way : {0u, 1u, 2u, 3u}) {
    arn_session_options options = Options(way < 2 ? ARN_KV_INT8 : ARN_KV_INT4, kSequences);
    options.overflow = way % 2 == 0 ? ARN_OVERFLOW_STOP : ARN_OVERFLOW_SHIFT;
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    if (arn_session_plan(model_.get(), &options, nullptr, 0, &plan) != ARN_OK) continue;
    const SessionPtr saved = NewSession(model_.get(), options);
    uint64_t state = 99;
    const auto below = [&state](uint32_t n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<uint32_t>((state >> 33) % n);
    };
    for (int step = 0; step < 200; ++step) {
      ASSERT_EQ(ARN_OK, arn_session_select(saved.get(), below(kSequences)));
      const uint32_t length = arn_session_length(saved.get());
      const std::vector<int32_t> ids = SomeIds(1 + below(30), kVocab);
      switch (below(8)) {
        case 0: arn_session_reset(saved.get()); break;
        case 1: arn_session_fork(saved.get(), below(kSequences), below(kSequences)); break;
        case 2: {
          const uint32_t first = arn_session_first_rewind_position(saved.get());
          ASSERT_EQ(ARN_OK, arn_session_rewind(saved.get(), first + below(length - first + 1)));
          break;
        }
        case 3:
          // Only a run clears the cancel, and it is not saved.
          if (length + ids.size() > options.context_tokens) break;
          arn_session_cancel(saved.get());
          EXPECT_NE(ARN_OK, arn_session_prefill(saved.get(), ids.data(), ids.size()));
          break;
        default: arn_session_prefill(saved.get(), ids.data(), ids.size()); break;
      }
      if (step % 8 != 0) continue;
      SCOPED_TRACE(testing::Message() << "way " << way << " step " << step);
      const std::vector<uint8_t> bytes = Save(saved.get());
      const SessionPtr restored = NewSession(model_.get(), options);
      ASSERT_EQ(ARN_OK, Restore(restored.get(), bytes)) << arn_session_last_error(restored.get());
      EXPECT_EQ(bytes, Save(restored.get()));
      // Runs the same token in both.
      for (uint32_t s = 0; s < kSequences; ++s) {
        const int32_t id = static_cast<int32_t>(below(kVocab));
        std::vector<float> said[2];
        arn_session* both[2] = {saved.get(), restored.get()};
        arn_status status[2];
        for (int i = 0; i < 2; ++i) {
          ASSERT_EQ(ARN_OK, arn_session_select(both[i], s));
          status[i] = arn_session_prefill(both[i], &id, 1);
          const float* logits = nullptr;
          if (status[i] != ARN_OK) continue;
          ASSERT_EQ(ARN_OK, arn_session_logits(both[i], &logits));
          said[i].assign(logits, logits + kVocab);
        }
        EXPECT_EQ(status[0], status[1]);
        EXPECT_EQ(said[0], said[1]) << "sequence " << s;
        ASSERT_EQ(TokensOf(both[0]), TokensOf(both[1]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, SessionStateTest, testing::ValuesIn(Shapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Widths, SessionStateTest, testing::ValuesIn(WidthShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(StateWidths, SessionStateTest, testing::ValuesIn(StateWidthShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(LinearAttention, SessionStateTest, testing::ValuesIn(LinearShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(States, SessionStateTest, testing::ValuesIn(StateShapes()), ShapeName);

class OneModel : public testing::Test {
 protected:
  OneModel() : bytes_(MakeTinyBundle(TinyBundle())), model_(OpenBytes(bytes_)) {}
  BundleBytes bytes_;
  ModelPtr model_;
};
using SessionStateSizes = OneModel;

TEST_F(SessionStateSizes, EmptySession_SavesAndRestoresEmpty) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_INT8, 3));
  const std::vector<uint8_t> state = Save(session.get());
  EXPECT_LE(state.size(), 16384u);
  const SessionPtr other = NewSession(model_.get(), Options(ARN_KV_INT8));
  Prefill(other.get(), SomeIds(10, kVocab));
  ASSERT_EQ(ARN_OK, Restore(other.get(), state)) << arn_session_last_error(other.get());
  EXPECT_EQ(0u, arn_session_length(other.get()));
  const float* logits = nullptr;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_logits(other.get(), &logits));
}

TEST_F(SessionStateSizes, LastSequencesUnused_FitInFewer) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_INT8, 8));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  Prefill(session.get(), SomeIds(10, kVocab));
  const std::vector<uint8_t> state = Save(session.get());
  const SessionPtr two = NewSession(model_.get(), Options(ARN_KV_INT8, 2));
  ASSERT_EQ(ARN_OK, Restore(two.get(), state)) << arn_session_last_error(two.get());
  EXPECT_EQ(Decode(session.get(), 10), Decode(two.get(), 10));
}

// Sampling options are kept even without tokens.
TEST_F(SessionStateSizes, SamplingOfAnEmptySequence_IsKept) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_INT8, 3));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
  const arn_sampling sampling = Sampling(5);
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  const SessionPtr other = NewSession(model_.get(), Options(ARN_KV_INT8, 3));
  ASSERT_EQ(ARN_OK, Restore(other.get(), Save(session.get())));
  for (arn_session* s : {session.get(), other.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_select(s, 2));
    Prefill(s, SomeIds(10, kVocab));
  }
  EXPECT_EQ(Decode(session.get(), 30), Decode(other.get(), 30));
}

// A state of version 1, without tagged fields, continues with the same random numbers.
TEST_F(SessionStateSizes, VersionOne_IsRead) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_INT8));
  const arn_sampling sampling = Sampling(5);
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
  Prefill(session.get(), SomeIds(10, kVocab));
  StateSequenceV1 record = {};
  record.temperature = sampling.temperature;
  record.top_k = sampling.top_k;
  record.top_p = sampling.top_p;
  record.min_p = sampling.min_p;
  record.seed = sampling.seed;
  Random random;
  random.Seed(sampling.seed);
  record.random_state = random.state();
  const std::vector<uint8_t> old = AsVersion1(Save(session.get()), {record});
  const SessionPtr other = NewSession(model_.get(), Options(ARN_KV_INT8));
  ASSERT_EQ(ARN_OK, Restore(other.get(), old)) << arn_session_last_error(other.get());
  EXPECT_EQ(Decode(session.get(), 30), Decode(other.get(), 30));
  record.top_p = 7.0f;
  EXPECT_EQ(ARN_BAD_SAVE, Restore(other.get(), AsVersion1(Save(session.get()), {record})));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(other.get()), "top_p is 7"));
}

TEST_F(SessionStateSizes, TooSmallABuffer_SaysWhatIsNeededAndWritesNothing) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_KV_INT8));
  Prefill(session.get(), SomeIds(10, kVocab));
  uint64_t needed = 0, bytes = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_bytes(session.get(), &needed));
  std::vector<uint8_t> buffer(needed, 0x5A);
  EXPECT_EQ(ARN_BUFFER_TOO_SMALL,
            arn_session_save_memory(session.get(), buffer.data(), needed - 1, &bytes));
  EXPECT_EQ(needed, bytes);
  EXPECT_EQ(std::vector<uint8_t>(needed, 0x5A), buffer);
  EXPECT_EQ(ARN_BUFFER_TOO_SMALL, arn_session_save_memory(session.get(), nullptr, 0, &bytes));
}

// The last token runs again where there are no logits, and it sees one position more than the next.
TEST_F(SessionStateSizes, RewoundToWhereAWindowLeavesAPage_GoesOnAfterRestore) {
  TinyBundle tiny;
  tiny.vocab = 61;
  tiny.window = 9;
  const BundleBytes bytes = MakeTinyBundle(tiny);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_KV_F32);
  options.kv_page_tokens = 8;
  for (uint32_t position = 60; position <= 70; ++position) {
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> ids = SomeIds(position + 2, 61);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), position - 4));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data() + position - 4, 6));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), position));
    const std::vector<uint8_t> state = Save(session.get());
    int32_t expected = 0, found = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &expected));
    const SessionPtr other = NewSession(model.get(), options);
    ASSERT_EQ(ARN_OK, arn_session_restore_memory(other.get(), state.data(), state.size(), nullptr));
    ASSERT_EQ(ARN_OK, arn_session_decode(other.get(), &found))
        << position << ": " << arn_session_last_error(other.get());
    EXPECT_EQ(expected, found);
  }
}

TEST_F(SessionStateSizes, NoCache_IsRefused) {
  arn_session_options options = Options(ARN_KV_INT8);
  options.no_cache = 1;
  const SessionPtr session = NewSession(model_.get(), options);
  uint64_t bytes = 1;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_save_bytes(session.get(), &bytes));
  EXPECT_EQ(0u, bytes);
  const SessionPtr other = NewSession(model_.get(), Options(ARN_KV_INT8));
  EXPECT_EQ(ARN_UNSUPPORTED, Restore(session.get(), Save(other.get())));
}

}  // namespace
}  // namespace arn::test
