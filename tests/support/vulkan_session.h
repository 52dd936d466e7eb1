// Fixture for session tests on a Vulkan device: a tiny model, skipped without Vulkan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/session_support.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {

// REQUIRES: Test is testing::Test or a parameterised test.
template <typename Test>
class OnVulkan : public Test {
 protected:
  explicit OnVulkan(const TinyBundle& bundle)
      : bytes_(std::make_unique<BundleBytes>(MakeTinyBundle(bundle))),
        model_(OpenBytes(*bytes_)),
        vocab_(bundle.vocab) {}

  void SetUp() override {
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }

  void Prefill(arn_session* session, uint32_t n) {
    const std::vector<int32_t> ids = SomeIds(n, vocab_);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
        << arn_session_last_error(session);
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
  uint32_t vocab_;
};

}  // namespace arn::test
