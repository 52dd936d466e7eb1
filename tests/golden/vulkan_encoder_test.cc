// Encoder-decoder models on the Vulkan backend and on the split backend: transformers' logits and
// tokens, and the lifetime of encoder outputs in a session.
#include <algorithm>
#include <cmath>

#include "tests/golden/encoder_case.h"
#include "tests/golden/vulkan_reason.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 2e-4;  // as golden_test.cc

arn_session_options Options(uint32_t backend, uint32_t chunk) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.device = "0";  // a software driver must be named explicitly
  options.kv_type = ARN_KV_F32;
  options.prefill_chunk = chunk;
  options.n_threads = 1;
  options.all_logits = 1;
  options.trust_device = 1;
  return options;
}

class VulkanEncoderTest : public EncoderCaseTest {
 protected:
  void SetUp() override {
    EncoderCaseTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    arn_session* session = nullptr;
    char error[512] = "";
    const arn_session_options options = Options(ARN_BACKEND_VULKAN, 0);
    const arn_status status =
        arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session);
    arn_session_destroy(session);
    if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
    ASSERT_EQ(ARN_OK, status) << error;
  }
};

TEST_P(VulkanEncoderTest, Prefill_GivesTheReferencesLogits) {
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const uint32_t chunk : {1u, 7u, 64u}) {
    SCOPED_TRACE(chunk);
    const SessionPtr session = Encoded(Options(ARN_BACKEND_VULKAN, chunk));
    ASSERT_NE(nullptr, session);
    const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), chunk, ids);
    ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
    }
  }
}

TEST_P(VulkanEncoderTest, Generate_AfterEncodingAgainAndRewinding_GivesTheReferencesTokens) {
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU}) {
    SCOPED_TRACE(backend);
    const SessionPtr session = Encoded(Options(backend, 0));
    ASSERT_NE(nullptr, session);
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 0));  // keeps the encoder output
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
  }
}

TEST_P(VulkanEncoderTest, Forks_ShareTheEncoderOutputUntilTheyGetTheirOwn) {
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU}) {
    SCOPED_TRACE(backend);
    arn_session_options options = Options(backend, 0);
    options.max_sequences = 3;
    const SessionPtr session = Encoded(options);
    ASSERT_NE(nullptr, session);
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));  // releases only sequence 0's share
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 1, 2));
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 0));
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    // Decodes a batch of sequences with different lengths whose encoder outputs have the same
    // length.
    const uint32_t both[2] = {1, 2};
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
    ASSERT_EQ(ARN_OK,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    int32_t ids[2];
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 2, ids))
        << arn_session_last_error(session.get());
    EXPECT_EQ(golden_.greedy[0], ids[0]);
  }
}

// Root mean square of a - b, as a share of that of a.
double RelativeRms(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, magnitude = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i] - b[i]), 2);
    magnitude += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(error / magnitude);
}

// With random weights unscaled attention is too sharp to compare with float results, and amplifies
// a value that rounds the other way: the CPU, too, differs from the reference by up to 6 %.
TEST_P(VulkanEncoderTest, QuantisedWeightsAndPages_AgreeWithTheReferenceBackend) {
  const std::vector<int32_t> ids = golden_.all_ids();
  const std::pair<const char*, uint32_t> cases[] = {
      {"f16", ARN_KV_INT8}, {"int8", ARN_KV_F16}, {"int4", ARN_KV_F32}};
  for (const auto& [weights, kv] : cases) {
    SCOPED_TRACE(testing::Message() << weights << ", kv " << kv);
    Open(weights);
    constexpr uint32_t kBackends = 3;
    std::vector<float> logits[kBackends];
    const uint32_t backends[] = {ARN_BACKEND_REFERENCE, ARN_BACKEND_VULKAN, ARN_BACKEND_CPU};
    for (uint32_t b = 0; b < kBackends; ++b) {
      arn_session_options options = Options(backends[b], 64);
      options.kv_type = kv;
      const SessionPtr session = Encoded(options);
      ASSERT_NE(nullptr, session);
      logits[b] = AllLogits(session.get(), golden_.vocab(), 64, ids);
    }
    ASSERT_EQ(logits[0].size(), logits[1].size());
    ASSERT_EQ(logits[0].size(), logits[2].size());
    const double cpu = RelativeRms(logits[0], logits[2]);
    EXPECT_LT(RelativeRms(logits[0], logits[1]), std::max(0.03, 2 * cpu));
  }
}

// The device self-test uses its own encoder input, which no sequence has afterwards.
TEST_P(VulkanEncoderTest, TestedDevice_IsKeptAndHasNoEncoderOutput) {
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_AUTO, ARN_BACKEND_VULKAN_CPU}) {
    SCOPED_TRACE(backend);
    arn_session_options options = Options(backend, 0);
    options.trust_device = 0;
    const SessionPtr session = NewSession(model_.get(), options);
    ASSERT_NE(nullptr, session);
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    EXPECT_STREQ(backend == ARN_BACKEND_VULKAN_CPU ? "vulkan+cpu" : "vulkan", info.name)
        << info.reason;
    EXPECT_EQ(ARN_BAD_STATE,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
  }
}

class VulkanRefusedEncoderTest : public EncoderCaseTest {};

TEST_P(VulkanRefusedEncoderTest, Session_IsRefusedWithTheReason_AndRunsOnTheCpu) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = ARN_BACKEND_VULKAN;
  char error[512] = "";
  arn_session* none = nullptr;
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &none));
  if (HasNoVulkan(error)) GTEST_SKIP() << error;
  EXPECT_NE(nullptr, std::strstr(error, "step features: rows that may be absent")) << error;
  options.backend = ARN_BACKEND_AUTO;
  const SessionPtr session = Encoded(options);
  ASSERT_NE(nullptr, session);
  EXPECT_EQ(golden_.greedy, Greedy(session.get()));
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanRefusedEncoderTest, testing::Values("samples"),
                         [](const auto& p) { return std::string(p.param); });

INSTANTIATE_TEST_SUITE_P(Cases, VulkanEncoderTest,
                         testing::Values("relative_bias", "relative_bias_gated", "features",
                                         "windows_both_ways"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test
