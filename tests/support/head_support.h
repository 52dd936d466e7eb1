// What tests of the drafters within a bundle share, multi-token prediction heads and assistants:
// whatever becomes of a text, their guesses leave its tokens as they are, and a drafter that is
// right by construction stays right.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/speculation_support.h"

namespace arn::test {

// Returns options of sessions with and without guesses of the bundle's drafter.
inline arn_session_options HeadOptions(bool guesses) {
  return Options(ARN_KV_INT8, guesses ? ARN_SPECULATE_MTP : ARN_SPECULATE_NONE);
}

// Samples at several temperatures. Returns the guesses that were accepted.
inline uint64_t ExpectSameSamples(const arn_model* model, bool same_pages) {
  uint64_t accepted = 0;
  for (const float temperature : {0.05f, 0.4f, 1.0f}) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = temperature;
    sampling.seed = 23;
    const SessionPtr plain = NewSession(model, HeadOptions(false)),
                     guessing = NewSession(model, HeadOptions(true));
    for (arn_session* session : {plain.get(), guessing.get()}) {
      EXPECT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
    }
    ExpectSameTexts(plain.get(), guessing.get(), 4, same_pages);
    EXPECT_GT(Stats(guessing.get()).guesses_accepted, 0u);
    accepted += Stats(guessing.get()).guesses_accepted;
  }
  return accepted;
}

// A drafter of TinyMtp::kRightByRow, vocab 64, counts on from the row that it reads: it is right
// only if that is the one of the token before, and behind a guess its own.
inline void ExpectRowsOfTheTokensBefore(const arn_model* model, arn_session_options options) {
  for (const uint32_t guesses : {1u, 15u}) {
    options.max_guesses = guesses;
    options.max_sequences = 2;
    const SessionPtr session = NewSession(model, options);
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

// The prompt comes in chunks and calls of several sizes. Returns the stats of each, for what must
// be equal among them.
inline std::vector<arn_session_stats_data> StatsOfPromptInParts(const arn_model* model) {
  const std::vector<int32_t> prompt = Prompt(200);
  std::vector<arn_session_stats_data> stats;
  for (const uint32_t chunk : {256u, 64u, 24u, 5u}) {
    arn_session_options options = HeadOptions(true);
    options.prefill_chunk = chunk;
    options.max_guesses = 4;
    const SessionPtr session = NewSession(model, options);
    for (size_t done = 0; done < prompt.size();) {
      const size_t n = std::min<size_t>(done % 2 == 0 ? 33 : 90, prompt.size() - done);
      EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + done, n));
      done += n;
    }
    Generate(session.get(), 200);
    stats.push_back(Stats(session.get()));
  }
  return stats;
}

// Rewinds, forks, decodes in batches and resets. `model` has a drafter that is always right.
inline void ExpectSameTextsAndRightGuesses(const arn_model* model, uint32_t state_snapshots) {
  std::vector<std::vector<int32_t>> texts[2];
  for (const bool guesses : {false, true}) {
    arn_session_options options = HeadOptions(guesses);
    options.max_sequences = 3;
    options.state_snapshots = state_snapshots;
    const SessionPtr session = NewSession(model, options);
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

// Saves and restores. The model, or the draft model of `options`, is always right.
inline void ExpectRightGuessesWhenRestored(const arn_model* model,
                                           const arn_session_options& options) {
  const std::vector<int32_t> prompt = Prompt(70);
  const SessionPtr first = NewSession(model, options);
  ASSERT_EQ(ARN_OK, arn_session_prefill(first.get(), prompt.data(), prompt.size()));
  Generate(first.get(), 20);
  uint64_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_bytes(first.get(), &n));
  std::vector<uint8_t> saved(n);
  ASSERT_EQ(ARN_OK, arn_session_save_memory(first.get(), saved.data(), saved.size(), &n));
  const std::vector<int32_t> expected = Generate(first.get(), 30).ids;
  const SessionPtr restored = NewSession(model, options);
  ASSERT_EQ(ARN_OK,
            arn_session_restore_memory(restored.get(), saved.data(), saved.size(), nullptr));
  EXPECT_EQ(expected, Generate(restored.get(), 30).ids);
  EXPECT_EQ(1.0, AcceptedShare(restored.get()));
}

// A context of 128 tokens ends the text, or shifts.
inline void ExpectSameTextsInAFullContext(const arn_model* model) {
  for (const uint32_t overflow : {ARN_OVERFLOW_STOP, ARN_OVERFLOW_SHIFT}) {
    std::vector<std::vector<int32_t>> texts;
    for (const bool guesses : {false, true}) {
      arn_session_options options = HeadOptions(guesses);
      options.context_tokens = 128;
      options.overflow = overflow;
      if (overflow == ARN_OVERFLOW_SHIFT) options.pinned_tokens = 8;
      const SessionPtr session = NewSession(model, options);
      const std::vector<int32_t> prompt = Prompt(50);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
      texts.push_back(Generate(session.get(), overflow == ARN_OVERFLOW_STOP ? 79 : 300).ids);
      if (guesses) {
        EXPECT_GT(Stats(session.get()).guesses_proposed, 20u);
      }
    }
    EXPECT_EQ(texts[0], texts[1]);
  }
}

inline void ExpectSameTextWhenCancelled(const arn_model* model) {
  std::vector<int32_t> texts[2];
  for (const bool guesses : {false, true}) {
    const SessionPtr session = NewSession(model, HeadOptions(guesses));
    const std::vector<int32_t> prompt = Prompt(70);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    texts[guesses] = GenerateWithCancels(session.get(), 120);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace arn::test
