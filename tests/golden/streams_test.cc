// Layers with several residual streams: sequences that are forked, rewound, saved and restored
// continue with transformers' tokens.
#include <cmath>

#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 2e-4;  // as in golden_test.cc

class StreamsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam());
    ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", "f32"}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  SessionPtr Session(uint32_t backend, uint32_t sequences) const {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    options.prefill_chunk = 7;
    options.kv_page_tokens = 8;
    options.max_sequences = sequences;
    options.n_threads = 2;
    return NewSession(model_.get(), options);
  }

  // Expects the golden continuation of the selected sequence, from new token `first` on.
  void ExpectContinuation(arn_session* session, size_t first) const {
    for (size_t i = first; i < golden_.greedy.size(); ++i) {
      const float* logits = nullptr;
      ASSERT_EQ(ARN_OK, arn_session_logits(session, &logits));
      ExpectLogits(golden_, golden_.prompt.size() - 1 + i, logits, kTolerance);
      int32_t id = -1;
      ASSERT_EQ(ARN_OK, arn_session_decode(session, &id));
      ASSERT_EQ(golden_.greedy[i], id) << "new token " << i;
    }
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

TEST_P(StreamsTest, Rewind_ContinuesAsBefore) {
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const SessionPtr session = Session(backend, 1);
    ASSERT_NE(nullptr, session);
    const std::vector<int32_t>& prompt = golden_.prompt;
    const int32_t other[] = {7, 8, 9};
    const size_t common = prompt.size() - 5;
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), common));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), other, 3));
    const uint32_t at = arn_session_first_rewind_position(session.get());
    ASSERT_LE(at, common);
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), at));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + at, prompt.size() - at));
    ExpectContinuation(session.get(), 0);
  }
}

TEST_P(StreamsTest, Fork_BothContinue) {
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const SessionPtr session = Session(backend, 2);
    ASSERT_NE(nullptr, session);
    ASSERT_EQ(ARN_OK,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
    const int32_t other[] = {7, 8, 9};
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), other, 3));
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
    ExpectContinuation(session.get(), 0);
  }
}

TEST_P(StreamsTest, SaveAndRestore_Continues) {
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const SessionPtr session = Session(backend, 1), other = Session(backend, 1);
    ASSERT_NE(nullptr, session);
    ASSERT_NE(nullptr, other);
    ASSERT_EQ(ARN_OK,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    int32_t id = -1;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    uint64_t bytes = 0;
    ASSERT_EQ(ARN_OK, arn_session_save_bytes(session.get(), &bytes));
    std::vector<uint8_t> state(bytes);
    ASSERT_EQ(ARN_OK, arn_session_save_memory(session.get(), state.data(), bytes, &bytes));
    ASSERT_EQ(ARN_OK, arn_session_restore_memory(other.get(), state.data(), bytes, nullptr))
        << arn_session_last_error(other.get());
    ExpectContinuation(other.get(), 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, StreamsTest,
                         testing::Values("residual_streams", "residual_streams_odd"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test
