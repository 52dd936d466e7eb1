// A single greedy sequence uses the argmax of the run and keeps no logits, with no visible
// difference. Sessions of two sequences keep the logits.
#include <arenite/observe.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/print_params.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 2053;

class BestIdSessions : public testing::TestWithParam<DType> {
 protected:
  static BundleBytes Bytes() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.weights = GetParam();
    return MakeTinyBundle(bundle);
  }
  BestIdSessions() : bytes_(Bytes()), model_(OpenBytes(bytes_)) {
    for (SessionPtr* session : {&finds_, &keeps_}) {
      arn_session_options options = ARN_SESSION_OPTIONS_INIT;
      options.context_tokens = 64;
      options.n_threads = 2;
      options.max_sequences = session == &finds_ ? 1 : 2;
      *session = NewSession(model_.get(), options);
      const std::vector<int32_t> prompt = SomeIds(9, kVocab);
      EXPECT_EQ(ARN_OK, arn_session_prefill(session->get(), prompt.data(), prompt.size()));
    }
  }
  static int32_t Decode(const SessionPtr& session) {
    int32_t id = -1;
    EXPECT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    return id;
  }
  static std::vector<float> Logits(const SessionPtr& session) {
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
    return {logits, logits + kVocab};
  }
  void ExpectSameDecoded(int n) {
    for (int i = 0; i < n; ++i) EXPECT_EQ(Decode(keeps_), Decode(finds_)) << i;
  }
  void ExpectSameLogits() {
    const std::vector<float> expected = Logits(keeps_), found = Logits(finds_);
    EXPECT_EQ(0, std::memcmp(expected.data(), found.data(), kVocab * sizeof(float)));
  }
  void SetTemperature(float temperature) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = temperature;
    sampling.seed = 5;
    for (const SessionPtr* session : {&finds_, &keeps_}) {
      EXPECT_EQ(ARN_OK, arn_session_set_sampling(session->get(), &sampling));
    }
  }

  const BundleBytes bytes_;
  const ModelPtr model_;
  SessionPtr finds_, keeps_;
};

TEST_P(BestIdSessions, Greedy_SameTokensAndLogits) {
  ExpectSameDecoded(10);
  ExpectSameLogits();
  ExpectSameDecoded(5);
  ExpectSameLogits();
}

TEST_P(BestIdSessions, Sample_ChangesNothing) {
  ExpectSameDecoded(3);
  int32_t first = -1, second = -2;
  EXPECT_EQ(ARN_OK, arn_session_sample(finds_.get(), &first));
  EXPECT_EQ(ARN_OK, arn_session_sample(finds_.get(), &second));
  EXPECT_EQ(first, second);
  EXPECT_EQ(first, Decode(finds_));
  EXPECT_EQ(first, Decode(keeps_));
  ExpectSameLogits();
}

TEST_P(BestIdSessions, TemperatureBetweenTwoSteps_DrawsFromTheLogits) {
  ExpectSameDecoded(3);
  SetTemperature(1.5f);
  ExpectSameDecoded(6);
  SetTemperature(0.0f);
  ExpectSameDecoded(6);
  ExpectSameLogits();
}

TEST_P(BestIdSessions, Generate_SameTokens) {
  const auto generate = [](const SessionPtr& session) {
    std::vector<int32_t> ids;
    arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
    options.max_tokens = 20;
    options.ignore_eos = 1;
    options.user = &ids;
    options.callback = [](void* user, int32_t id, const char*, size_t) {
      static_cast<std::vector<int32_t>*>(user)->push_back(id);
      return 0;
    };
    EXPECT_EQ(ARN_OK, arn_session_generate(session.get(), &options, nullptr));
    return ids;
  };
  EXPECT_EQ(generate(keeps_), generate(finds_));
  ExpectSameLogits();
}

TEST_P(BestIdSessions, BatchOfOne_SameTokensAndLogits) {
  const uint32_t sequence = 0;
  for (int i = 0; i < 5; ++i) {
    int32_t expected = -1, found = -2;
    EXPECT_EQ(ARN_OK, arn_session_decode_batch(keeps_.get(), &sequence, 1, &expected));
    EXPECT_EQ(ARN_OK, arn_session_decode_batch(finds_.get(), &sequence, 1, &found));
    EXPECT_EQ(expected, found);
  }
  ExpectSameLogits();
}

TEST_P(BestIdSessions, SavedWithoutHavingBeenRead_RestoredLogitsAreThere) {
  ExpectSameDecoded(4);
  uint64_t bytes = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_bytes(finds_.get(), &bytes));
  std::vector<unsigned char> state(bytes);
  ASSERT_EQ(ARN_OK, arn_session_save_memory(finds_.get(), state.data(), bytes, &bytes));
  ExpectSameDecoded(7);
  ASSERT_EQ(ARN_OK, arn_session_restore_memory(finds_.get(), state.data(), bytes, nullptr));
  ASSERT_EQ(ARN_OK, arn_session_rewind(keeps_.get(), arn_session_length(finds_.get()) - 1));
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(finds_.get(), &ids, &n));
  ASSERT_EQ(ARN_OK, arn_session_prefill(keeps_.get(), ids + n - 1, 1));
  ExpectSameLogits();
  ExpectSameDecoded(7);
}

// Cancels a call of the session when its output head begins.
class CancelAtHead {
 public:
  explicit CancelAtHead(arn_session* session) : session_(session) {
    EXPECT_EQ(ARN_OK, arn_session_observe_matmuls(session, OnMatmul, this));
  }
  ~CancelAtHead() {
    EXPECT_EQ(ARN_OK, arn_session_observe_matmuls(session_, nullptr, nullptr));
    arn_session_clear_cancel(session_);
  }

 private:
  static void OnMatmul(void* user, const char*, const float*, size_t, size_t, const float*,
                       size_t out_width) {
    if (out_width == kVocab) arn_session_cancel(static_cast<CancelAtHead*>(user)->session_);
  }
  arn_session* session_;
};

// A sampled token's run is cut in its head, which writes over the logits it was drawn from.
TEST_P(BestIdSessions, CancelledInTheHead_GoesOnAsIfNothingHadBeen) {
  SetTemperature(1.0f);
  ExpectSameDecoded(3);
  for (int i = 0; i < 3; ++i) {
    const uint32_t length = arn_session_length(finds_.get());
    for (int times = 0; times < 2; ++times) {
      const CancelAtHead cancel(finds_.get());
      int32_t id = -1;
      EXPECT_EQ(ARN_CANCELLED, arn_session_decode(finds_.get(), &id));
      EXPECT_EQ(length, arn_session_length(finds_.get()));
    }
    if (i != 1) ExpectSameLogits();
    ExpectSameDecoded(2);
  }
  ExpectSameLogits();
}

// Logits that no run has left in the session cannot be computed again: that head is not cut.
TEST_P(BestIdSessions, CancelledInTheHead_AfterARestore_KeepsTheRestoredLogits) {
  SetTemperature(1.0f);
  ExpectSameDecoded(3);
  uint64_t bytes = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_bytes(finds_.get(), &bytes));
  std::vector<unsigned char> state(bytes);
  ASSERT_EQ(ARN_OK, arn_session_save_memory(finds_.get(), state.data(), bytes, &bytes));
  const std::vector<float> saved = Logits(finds_);
  ExpectSameDecoded(2);
  ASSERT_EQ(ARN_OK, arn_session_restore_memory(finds_.get(), state.data(), bytes, nullptr));
  const uint32_t length = arn_session_length(finds_.get());
  {
    const CancelAtHead cancel(finds_.get());
    int32_t id = -1;
    EXPECT_EQ(ARN_OK, arn_session_decode(finds_.get(), &id));
    EXPECT_EQ(length + 1, arn_session_length(finds_.get()));
  }
  ASSERT_EQ(ARN_OK, arn_session_restore_memory(finds_.get(), state.data(), bytes, nullptr));
  EXPECT_EQ(saved, Logits(finds_));
}

// Of a run with all logits, the last row is the token's, and the backend has the first.
TEST_P(BestIdSessions, CancelledInTheHead_AfterAllLogits_IsTooLate) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 64;
  options.n_threads = 2;
  options.all_logits = 1;
  const SessionPtr session = NewSession(model_.get(), options);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 1.0f;
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
  const std::vector<int32_t> ids = SomeIds(5, kVocab);
  const float* all = nullptr;
  ASSERT_EQ(ARN_OK, arn_session_prefill_logits(session.get(), ids.data(), ids.size(), &all));
  const CancelAtHead cancel(session.get());
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), 1));
  // This run had one row.
  EXPECT_EQ(ARN_CANCELLED, arn_session_prefill(session.get(), ids.data(), 1));
  EXPECT_EQ(ids.size() + 1, arn_session_length(session.get()));
}

INSTANTIATE_TEST_SUITE_P(Weights, BestIdSessions,
                         testing::Values(DType::kF32, DType::kBf16, DType::kInt8, DType::kInt4));

}  // namespace
}  // namespace arn::test
