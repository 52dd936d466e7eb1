// Tells a machine without Vulkan from a session that cannot be created.
#pragma once

#include <string>

#include "tests/harness/bundles.h"

namespace arn::test {

// `reason` is the message of arn_session_create. A model the backend refuses gives another one.
inline bool HasNoVulkan(const std::string& reason) {
  return reason.find("libvulkan.so.1, is missing") != std::string::npos ||
         reason.find("Vulkan: no driver") != std::string::npos ||
         reason.find("Vulkan: no device") != std::string::npos;
}

inline void SkipOrFail(arn_status status, const char* error) {
  if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
  ASSERT_EQ(ARN_OK, status) << error;
}

// Creates a session. Returns null after a test failure, or if the test is skipped without a driver.
inline SessionPtr CreateOrSkip(const arn_model* model, const arn_session_options& options) {
  arn_session* session = nullptr;
  char error[512] = "";
  const arn_status status =
      arn_session_create(model, &options, nullptr, 0, error, sizeof error, &session);
  SkipOrFail(status, error);
  return SessionPtr(session);
}

}  // namespace arn::test
