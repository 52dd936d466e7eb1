// Overflow of a sequence: stop, error, or shift.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/logits_support.h"
#include "tests/support/print_params.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61, kContext = 64;

arn_session_options Options(uint32_t overflow, uint32_t kv) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv;
  options.n_threads = 1;
  options.context_tokens = kContext;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  options.overflow = overflow;
  return options;
}

BundleBytes Bundle(const std::vector<TinyLayer>& layers) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = layers;
  return MakeTinyBundle(bundle);
}

std::vector<int32_t> Tokens(const arn_session* session) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  EXPECT_EQ(ARN_OK, arn_session_tokens(session, &ids, &n));
  return std::vector<int32_t>(ids, ids + n);
}

struct Case {
  uint32_t backend, kv, pinned;
  double bound;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << (c.backend == ARN_BACKEND_CPU ? "cpu_" : "reference_") << KvTypeName(c.kv) << "_pinned_"
       << c.pinned;
}

class ShiftTest : public testing::TestWithParam<Case> {};

// The keys of the first layer depend only on token and position. With one layer a shifted sequence
// therefore equals a fresh one with the remaining tokens.
TEST_P(ShiftTest, OneLayer_EqualsRecomputingWhatIsLeft) {
  for (const TinyLayer& layer : {TinyLayer{}, TinyLayer{20}, TinyLayer{0, 16}}) {
    const BundleBytes bytes = Bundle({layer});
    const ModelPtr model = OpenBytes(bytes);
    arn_session_options options = Options(ARN_OVERFLOW_SHIFT, GetParam().kv);
    options.backend = GetParam().backend;
    options.pinned_tokens = GetParam().pinned;
    const SessionPtr session = NewSession(model.get(), options);
    const SessionPtr fresh = NewSession(model.get(), options);
    const std::vector<int32_t> prompt = SomeIds(40, kVocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    uint32_t shifts = 0, before = 40;
    for (int i = 0; i < 150; ++i) {
      int32_t id = 0;
      ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id))
          << arn_session_last_error(session.get());
      const std::vector<int32_t> left = Tokens(session.get());
      ASSERT_LE(left.size(), kContext);
      ASSERT_EQ(id, left.back());
      shifts += left.size() < before;
      before = static_cast<uint32_t>(left.size());
      // Pinned tokens never move.
      ASSERT_TRUE(std::equal(prompt.begin(), prompt.begin() + GetParam().pinned, left.begin()));
      if (i % 7 != 0) continue;
      ASSERT_EQ(ARN_OK, arn_session_reset(fresh.get()));
      ASSERT_EQ(ARN_OK, arn_session_prefill(fresh.get(), left.data(), left.size()));
      ASSERT_LT(LogitDifference(session.get(), fresh.get(), kVocab), GetParam().bound) << i;
    }
    EXPECT_GE(shifts, 4u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShiftTest,
                         testing::Values(Case{ARN_BACKEND_CPU, ARN_KV_F32, 0, 2e-5},
                                         Case{ARN_BACKEND_CPU, ARN_KV_F32, 4, 2e-5},
                                         Case{ARN_BACKEND_REFERENCE, ARN_KV_F32, 16, 2e-5},
                                         Case{ARN_BACKEND_CPU, ARN_KV_F16, 4, 2e-3},
                                         // Each rotation rounds the keys again.
                                         Case{ARN_BACKEND_CPU, ARN_KV_INT8, 4, 3e-2}));

// A prompt longer than the context, with shifts between chunks.
TEST(Shift_Prefill, LongerThanTheContext_KeepsTheLastTokens) {
  const BundleBytes bytes = Bundle({{}, {12}});
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_OVERFLOW_SHIFT, ARN_KV_F32);
  options.pinned_tokens = 8;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(500, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  const std::vector<int32_t> left = Tokens(session.get());
  EXPECT_TRUE(std::equal(left.begin(), left.begin() + 8, prompt.begin()));
  EXPECT_TRUE(std::equal(left.rbegin(), left.rend() - 8, prompt.rbegin()));
}

// Shifting a shared page copies it, so the other sequence keeps its keys.
TEST(Shift_Fork, TheOtherSequence_StaysAsItWas) {
  const BundleBytes bytes = Bundle({{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_OVERFLOW_SHIFT, ARN_KV_F32);
  options.max_sequences = 2;
  const SessionPtr session = NewSession(model.get(), options);
  options.max_sequences = 1;
  const SessionPtr truth = NewSession(model.get(), options);
  const std::vector<int32_t> ids = SomeIds(60, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), 50));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  for (int i = 0; i < 30; ++i) {
    int32_t id = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
  }
  EXPECT_LT(arn_session_length(session.get()), 80u);
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data() + 50, 10));
  ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), ids.data(), 60));
  EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 3e-5);
}

TEST(Shift_Policies, StopEndsGeneration_ErrorIsAnError) {
  const BundleBytes bytes = Bundle({{}});
  const ModelPtr model = OpenBytes(bytes);
  const std::vector<int32_t> prompt = SomeIds(60, kVocab);
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 20;
  generate.ignore_eos = 1;
  for (uint32_t overflow : {ARN_OVERFLOW_STOP, ARN_OVERFLOW_ERROR, ARN_OVERFLOW_SHIFT}) {
    const SessionPtr session = NewSession(model.get(), Options(overflow, ARN_KV_INT8));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    const arn_status status = arn_session_generate(session.get(), &generate, &result);
    EXPECT_EQ(overflow == ARN_OVERFLOW_ERROR ? ARN_CONTEXT_FULL : ARN_OK, status);
    EXPECT_EQ(overflow == ARN_OVERFLOW_SHIFT ? 20u : 5u, result.n_tokens);
    if (overflow == ARN_OVERFLOW_STOP) {
      EXPECT_EQ(ARN_FINISH_CONTEXT, result.finish);
    }
    if (overflow == ARN_OVERFLOW_SHIFT) {
      EXPECT_EQ(ARN_FINISH_LENGTH, result.finish);
    }
  }
}

TEST(Shift_Options, WhatCannotWork_IsRefusedByName) {
  const BundleBytes bytes = Bundle({{0, 48}});
  const ModelPtr model = OpenBytes(bytes);
  auto refused = [&](arn_session_options options, const char* word) {
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256];
    EXPECT_EQ(ARN_BAD_ARGUMENT,
              arn_session_plan(model.get(), &options, error, sizeof error, &plan));
    EXPECT_NE(std::string::npos, std::string(error).find(word)) << error;
  };
  arn_session_options options = Options(ARN_OVERFLOW_SHIFT, ARN_KV_F32);
  refused(options, "drops 48 tokens");  // one chunk at a time, with a context of 64
  options.overflow = ARN_OVERFLOW_STOP;
  options.pinned_tokens = 3;
  refused(options, "pinned_tokens is 3");
}

}  // namespace
}  // namespace arn::test
