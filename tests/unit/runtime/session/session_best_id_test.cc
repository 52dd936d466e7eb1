// A single greedy sequence uses the argmax of the run and keeps no logits, with no visible
// difference. Sessions of two sequences keep the logits.
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

INSTANTIATE_TEST_SUITE_P(Weights, BestIdSessions,
                         testing::Values(DType::kF32, DType::kBf16, DType::kInt8, DType::kInt4));

}  // namespace
}  // namespace arn::test
