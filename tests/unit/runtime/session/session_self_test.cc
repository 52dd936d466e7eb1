// Devices tested against the self-test results in the bundle.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/self_test_support.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t backend) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.n_threads = 1;
  options.context_tokens = 64;
  options.device = "0";  // a software driver must be named explicitly
  return options;
}

using Tamper = std::function<void(TinySelfTest*)>;

// The stored logits are those of the perturbed run, not the model's.
const Tamper kTampers[] = {
    [](TinySelfTest* test) { test->scales[2] *= 1.5f; },
    [](TinySelfTest* test) { test->logits[5] = static_cast<int16_t>(test->logits[5] ^ 0x4000); },
    [](TinySelfTest* test) { test->ids[0] = test->ids[0] == 0 ? 1 : 0; },
};

class VulkanSelfTestTest : public testing::Test {
 protected:
  VulkanSelfTestTest() { Open(nullptr); }
  void SetUp() override {
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }

  void Open(const Tamper& tamper, uint32_t short_context = 0) {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.short_context = short_context;
    bundle = WithSelfTest(bundle);
    if (tamper) tamper(&bundle.self_test);
    model_.reset();
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }

  arn_status Create(const arn_session_options& options, std::string* error) {
    char text[512] = "";
    arn_session* session = nullptr;
    const arn_status status =
        arn_session_create(model_.get(), &options, nullptr, 0, text, sizeof text, &session);
    *error = text;
    arn_session_destroy(session);
    return status;
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

TEST_F(VulkanSelfTestTest, DeviceThatAgreesWithTheBundle_IsKept) {
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_.get(), &info));
  EXPECT_EQ(kSelfTestTokens, info.self_test_tokens);
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU, ARN_BACKEND_AUTO}) {
    for (const uint32_t kv : {ARN_KV_F32, ARN_KV_INT8, ARN_KV_INT4}) {
      arn_session_options options = Options(backend);
      options.kv_type = kv;
      const SessionPtr session = NewSession(model_.get(), options);
      ASSERT_NE(nullptr, session);
      arn_backend_info chosen = ARN_BACKEND_INFO_INIT;
      ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &chosen));
      EXPECT_NE(std::string("cpu"), chosen.name);
      EXPECT_EQ(std::string(), chosen.reason);
      EXPECT_EQ(0u, arn_session_length(session.get()));
    }
  }
}

// The refusals also prove that the bundle's results are used.
TEST_F(VulkanSelfTestTest, BundleThatExpectsSomethingElse_IsAReasonNotToTakeTheDevice) {
  for (const Tamper& tamper : kTampers) {
    Open(tamper);
    std::string error;
    EXPECT_EQ(ARN_DEVICE, Create(Options(ARN_BACKEND_VULKAN), &error));
    EXPECT_NE(std::string::npos, error.find("failed the self-test")) << error;
    EXPECT_NE(std::string::npos, error.find("the bundle's")) << error;
    const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_AUTO));
    arn_backend_info chosen = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &chosen));
    EXPECT_EQ(std::string("cpu"), chosen.name);
    EXPECT_EQ(error, chosen.reason);
    arn_session_options trusting = Options(ARN_BACKEND_VULKAN);
    trusting.trust_device = 1;
    EXPECT_EQ(ARN_OK, Create(trusting, &error)) << error;
  }
}

// Sessions not covered by the bundle's self-test are compared with the CPU.
TEST_F(VulkanSelfTestTest, SessionsThatTheBundleDoesNotSpeakOf_AreHeldAgainstTheCpu) {
  std::string error;
  Open(kTampers[0]);
  arn_session_options options = Options(ARN_BACKEND_VULKAN);
  options.context_tokens = kSelfTestTokens - 1;
  EXPECT_EQ(ARN_OK, Create(options, &error)) << error;
  // A context length with other RoPE angles.
  Open(kTampers[0], 40);
  EXPECT_EQ(ARN_OK, Create(Options(ARN_BACKEND_VULKAN), &error)) << error;
  options.context_tokens = 40;
  EXPECT_EQ(ARN_DEVICE, Create(options, &error));
}

}  // namespace
}  // namespace arn::test
