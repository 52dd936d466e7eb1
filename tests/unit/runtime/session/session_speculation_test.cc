// Speculation changes nothing but the time: tokens, logits, random numbers and pages in use are
// those of a session without, for every kind of cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"
#include "tests/support/row_bits.h"
#include "tests/support/speculation_support.h"

namespace arn::test {
namespace {

class SpeculationTest : public testing::TestWithParam<Shape> {};

TEST_P(SpeculationTest, Greedy_EveryKvType_TheSameTokens) {
  uint64_t accepted = 0, rejected = 0;
  for (const DType weights : {DType::kF32, DType::kF16, DType::kInt8, DType::kInt4}) {
    if (!RowsKeepTheirBits(weights)) continue;
    const BundleBytes bytes = Bundle(weights, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t kv : {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2}) {
      SCOPED_TRACE(std::string(DTypeName(weights)) + " weights, " + arn_kv_type_name(kv) + " KV");
      const SessionPtr plain = NewSession(model.get(), Options(kv, ARN_SPECULATE_NONE));
      const SessionPtr guessing = NewSession(model.get(), Options(kv, ARN_SPECULATE_NGRAM));
      ExpectSameTexts(plain.get(), guessing.get(), 5);
      if (HasFailure()) return;
      const arn_session_stats_data stats = Stats(guessing.get());
      accepted += stats.guesses_accepted;
      rejected += stats.guesses_proposed - stats.guesses_accepted;
      EXPECT_EQ(0u, Stats(plain.get()).guess_runs);
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(rejected, 100u);
}

// The same random numbers give the same tokens, so the distribution is that of plain sampling.
TEST_P(SpeculationTest, Sampling_TheSameTokensForTheSameSeed) {
  const BundleBytes bytes = Bundle(DType::kF16, GetParam().layers);
  const ModelPtr model = OpenBytes(bytes);
  uint64_t accepted = 0;
  for (int kind = 0; kind < 4; ++kind) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = kind == 1 ? 0.05f : 0.4f;
    sampling.seed = 17 + static_cast<uint64_t>(kind);
    if (kind == 2) sampling.top_k = 5;
    if (kind == 2) sampling.top_p = 0.9f;
    if (kind == 3) sampling.repetition_penalty = 1.1f;
    if (kind == 3) sampling.frequency_penalty = 0.1f;
    SCOPED_TRACE(kind);
    SessionPtr sessions[2];
    for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_NGRAM}) {
      arn_session_options options = Options(ARN_KV_INT8, speculation);
      options.logits_processors = 1;
      sessions[speculation] = NewSession(model.get(), options);
      ASSERT_EQ(ARN_OK, arn_session_set_sampling(sessions[speculation].get(), &sampling));
    }
    ExpectSameTexts(sessions[0].get(), sessions[1].get(), 5);
    if (HasFailure()) return;
    accepted += Stats(sessions[1].get()).guesses_accepted;
  }
  EXPECT_GT(accepted, 20u);
}

INSTANTIATE_TEST_SUITE_P(Layers, SpeculationTest,
                         testing::ValuesIn(ForThisCpu(Join({Shapes(), WidthShapes()}))), ShapeName);

// Recurrent states go back to those before the run, and the rows up to the last right guess run
// again with the next ones.
class SpeculationStateTest : public testing::TestWithParam<Shape> {};

TEST_P(SpeculationStateTest, GreedyAndSampled_TheSameTokens) {
  uint64_t accepted = 0, rejected = 0, again = 0;
  for (const DType weights : {DType::kF16, DType::kInt8}) {
    if (!RowsKeepTheirBits(weights)) continue;
    const BundleBytes bytes = Bundle(weights, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    const BundleBytes other = Bundle(DType::kF16, {{}}, 3);
    const ModelPtr draft = OpenBytes(other);
    for (const bool is_sampled : {false, true}) {
      for (const uint32_t speculation : {ARN_SPECULATE_NGRAM, ARN_SPECULATE_AUTO}) {
        SCOPED_TRACE(std::string(DTypeName(weights)) + " weights, speculation " +
                     std::to_string(speculation) + (is_sampled ? ", sampled" : ""));
        arn_session_options options = Options(
            ARN_KV_INT8, speculation, speculation == ARN_SPECULATE_AUTO ? draft.get() : nullptr);
        const SessionPtr plain = NewSession(model.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE));
        const SessionPtr guessing = NewSession(model.get(), options);
        arn_sampling sampling = ARN_SAMPLING_INIT;
        sampling.temperature = is_sampled ? 0.3f : 0.0f;
        sampling.seed = 5;
        for (arn_session* session : {plain.get(), guessing.get()}) {
          ASSERT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
        }
        // A window's pages leave it with the next run.
        ExpectSameTexts(plain.get(), guessing.get(), 3, /*same_pages=*/false);
        if (HasFailure()) return;
        const arn_session_stats_data stats = Stats(guessing.get());
        accepted += stats.guesses_accepted;
        rejected += stats.guesses_proposed - stats.guesses_accepted;
        again += stats.recomputed_tokens;
      }
    }
  }
  // How many are right is a matter of the CPU's rounding; some must be, or nothing was tested.
  EXPECT_GT(accepted, 3u);
  EXPECT_GT(rejected, 50u);
  EXPECT_GT(again, 50u);
}

INSTANTIATE_TEST_SUITE_P(Layers, SpeculationStateTest,
                         testing::ValuesIn(ForThisCpu(Join({StateShapes(), LinearShapes(),
                                                            StateWidthShapes()}))),
                         ShapeName);

// What comes after a generation whose last guesses were wrong: another prompt, a fork, a saved
// state, a rewind to a snapshot, a decode step.
TEST(Speculation, StatesAfterAGeneration_TheSameTokens) {
  const BundleBytes bytes =
      Bundle(DType::kF16, {{0, 0, -1, TinyMixer::kScan}, {}, {0, 0, -1, TinyMixer::kConv}});
  const ModelPtr model = OpenBytes(bytes);
  std::vector<std::vector<int32_t>> texts[2];
  for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_NGRAM}) {
    std::vector<std::vector<int32_t>>& out = texts[speculation];
    arn_session_options options = Options(ARN_KV_INT8, speculation);
    options.max_sequences = 2;
    options.state_snapshots = 3;
    options.snapshot_every = 16;
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> prompt = Prompt(70);
    for (uint32_t turn = 0; turn < 15; ++turn) {
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + turn, 13));
      out.push_back(Generate(session.get(), 5 + turn).ids);
      int32_t id = 0;
      switch (turn % 5) {
        case 0:
          ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
          out.push_back({id});
          break;
        case 1: {
          ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
          const uint32_t both[] = {1, 0};
          int32_t ids[2];
          ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 2, ids));
          out.emplace_back(ids, ids + 2);
          ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
          out.push_back(Generate(session.get(), 9).ids);
          ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
          ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
          break;
        }
        case 2: {
          uint64_t n = 0;
          ASSERT_EQ(ARN_OK, arn_session_save_bytes(session.get(), &n));
          std::vector<uint8_t> saved(n + 4096);
          ASSERT_EQ(ARN_OK, arn_session_save_memory(session.get(), saved.data(), saved.size(), &n));
          ASSERT_EQ(ARN_OK, arn_session_restore_memory(session.get(), saved.data(), n, nullptr));
          break;
        }
        case 3: {
          std::vector<float> keys(16 * 2 * 8), values(keys.size());
          ASSERT_EQ(ARN_OK,
                    arn_session_read_kv(session.get(), 1, 3, 10, keys.data(), values.data()));
          break;
        }
        default:
          ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
          out.push_back(Generate(session.get(), 7).ids);
          ASSERT_EQ(ARN_OK,
                    arn_session_rewind(session.get(), arn_session_length(session.get()) - 7));
      }
      out.push_back(Generate(session.get(), 6).ids);
    }
    if (speculation != ARN_SPECULATE_NONE) {
      EXPECT_GT(Stats(session.get()).guesses_accepted, 20u);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// The policy decides by measured times; whatever it decides, the tokens are the same.
TEST(Speculation, ByMeasuredTimes_TheSameTokens) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {20}, {}});
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_KV_INT8, ARN_SPECULATE_NGRAM);
  options.guess_always = 0;
  const SessionPtr plain = NewSession(model.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NONE));
  const SessionPtr guessing = NewSession(model.get(), options);
  ExpectSameTexts(plain.get(), guessing.get(), 5);
}

// A full context that shifts, and one that ends the text.
TEST(Speculation, FullContext_TheSameTokens) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {20}, {}});
  const ModelPtr model = OpenBytes(bytes);
  for (const uint32_t overflow : {ARN_OVERFLOW_STOP, ARN_OVERFLOW_SHIFT}) {
    std::vector<int32_t> texts[2];
    for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_NGRAM}) {
      arn_session_options options = Options(ARN_KV_INT8, speculation);
      options.context_tokens = 128;
      options.overflow = overflow;
      options.pinned_tokens = 8;
      if (overflow == ARN_OVERFLOW_STOP) options.pinned_tokens = 0;
      const SessionPtr session = NewSession(model.get(), options);
      const std::vector<int32_t> prompt = Prompt(50);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
      Text text;
      text.session = session.get();
      arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
      generate.max_tokens = 400;
      generate.ignore_eos = 1;
      generate.callback = OnToken;
      generate.user = &text;
      arn_generate_result result = ARN_GENERATE_RESULT_INIT;
      ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result));
      EXPECT_EQ(overflow == ARN_OVERFLOW_STOP ? 79u : 400u, result.n_tokens);
      texts[speculation] = text.ids;
    }
    EXPECT_EQ(texts[0], texts[1]);
  }
}

// Sequences that share pages: each guesses from its own text, and leaves the others alone.
TEST(Speculation, SeveralSequences_TheSameTokens) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {20}, {}});
  const ModelPtr model = OpenBytes(bytes);
  std::vector<std::vector<int32_t>> texts[2];
  for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_NGRAM}) {
    arn_session_options options = Options(ARN_KV_INT4, speculation);
    options.max_sequences = 4;
    options.kv_tokens = 700;
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> prompt = Prompt(70);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = 0.3f;
    sampling.seed = 4;
    ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
    for (uint32_t s = 1; s < 4; ++s) ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, s));
    for (uint32_t turn = 0; turn < 3; ++turn) {
      for (uint32_t s = 0; s < 4; ++s) {
        ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
        texts[speculation].push_back(Generate(session.get(), 25).ids);
      }
      const uint32_t all[] = {0, 1, 2, 3};
      int32_t ids[4];
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), all, 4, ids));
      texts[speculation].emplace_back(ids, ids + 4);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// A cancel between tokens that have run takes effect at once, and loses nothing.
TEST(Speculation, Cancel_KeepsWhatWasDeliveredAndGoesOn) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const std::vector<int32_t> prompt = Prompt(70);
  std::vector<int32_t> texts[2];
  for (const uint32_t speculation : {ARN_SPECULATE_NONE, ARN_SPECULATE_NGRAM}) {
    const SessionPtr session = NewSession(model.get(), Options(ARN_KV_INT8, speculation));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    std::vector<int32_t>& ids = texts[speculation];
    struct User {
      arn_session* session;
      std::vector<int32_t>* ids;
    } user = {session.get(), &ids};
    for (uint32_t n = 1; ids.size() < 150; ++n) {
      arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
      options.max_tokens = 40;
      options.ignore_eos = 1;
      options.user = &user;
      // Cancels at every seventh token: the token is not in the sequence, and comes again.
      options.callback = [](void* to, int32_t id, const char*, size_t) -> int32_t {
        auto& u = *static_cast<User*>(to);
        u.ids->push_back(id);
        if (u.ids->size() % 7 == 3) arn_session_cancel(u.session);
        return 0;
      };
      arn_generate_result result = ARN_GENERATE_RESULT_INIT;
      const arn_status status = arn_session_generate(session.get(), &options, &result);
      ASSERT_TRUE(status == ARN_OK || status == ARN_CANCELLED);
      ids.push_back(static_cast<int32_t>(1000 + result.n_tokens));
      ASSERT_LT(n, 100u);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Speculation, NoGuesses_RunsTokenByToken) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(ARN_KV_INT8, ARN_SPECULATE_NGRAM));
  const std::vector<int32_t> prompt = Prompt(70);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = 50;
  options.ignore_eos = options.no_guesses = 1;
  ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &options, nullptr));
  EXPECT_EQ(0u, Stats(session.get()).guess_runs);
  options.no_guesses = 0;
  ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &options, nullptr));
  EXPECT_GT(Stats(session.get()).guess_runs, 0u);
}

TEST(Speculation, WhatCannotWork_IsRefusedByName) {
  const BundleBytes bytes = Bundle(DType::kF32, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  const BundleBytes scan_bytes = Bundle(DType::kF32, {{0, 0, -1, TinyMixer::kScan}, {}});
  const ModelPtr scans = OpenBytes(scan_bytes);
  const auto refused = [](const arn_model* of, const arn_session_options& options,
                          arn_status status, const char* words) {
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256];
    EXPECT_EQ(status, arn_session_plan(of, &options, error, sizeof error, &plan));
    EXPECT_NE(std::string::npos, std::string(error).find(words)) << error;
  };
  const arn_session_options good = Options(ARN_KV_INT8, ARN_SPECULATE_NGRAM);
  arn_session_options options = Options(ARN_KV_INT4, ARN_SPECULATE_NGRAM);
  refused(scans.get(), options, ARN_UNSUPPORTED, "int4 or int2 KV beside layers with a recurrent");
  options = good;
  options.no_cache = 1;
  refused(model.get(), options, ARN_UNSUPPORTED, "no_cache");
  options = good;
  options.speculation = 9;
  refused(model.get(), options, ARN_UNSUPPORTED, "speculation 9");
  options = good;
  options.max_guesses = 64;
  refused(model.get(), options, ARN_BAD_ARGUMENT, "max_guesses is 64");
  options.speculation = ARN_SPECULATE_NONE;
  options.max_guesses = 3;
  refused(model.get(), options, ARN_BAD_ARGUMENT, "max_guesses is 3");
}

// The plan has the bytes of the index and of the rows of logits, and little more.
TEST(Speculation, Plan_CountsItsBytes) {
  const BundleBytes bytes = Bundle(DType::kF32, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  arn_memory_plan plain = ARN_MEMORY_PLAN_INIT, guessing = ARN_MEMORY_PLAN_INIT;
  const arn_session_options none = Options(ARN_KV_INT8, ARN_SPECULATE_NONE),
                            ngram = Options(ARN_KV_INT8, ARN_SPECULATE_NGRAM);
  ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &none, nullptr, 0, &plain));
  ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &ngram, nullptr, 0, &guessing));
  EXPECT_EQ(0u, plain.speculation_bytes);
  EXPECT_EQ(0u, plain.max_guesses);
  EXPECT_EQ(15u, guessing.max_guesses);
  constexpr uint64_t kBytes = (3 * kContext + 15 * kVocab) * 4;
  EXPECT_GE(guessing.speculation_bytes, kBytes);
  EXPECT_LT(guessing.speculation_bytes, kBytes + 512);
  EXPECT_GE(guessing.io_bytes, plain.io_bytes + guessing.speculation_bytes - 64);
}

}  // namespace
}  // namespace arn::test
