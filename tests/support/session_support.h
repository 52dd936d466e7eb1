// Shorthands over the C API for tests that run sessions.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "arenite/arenite.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {

#if defined(ARN_SANITIZE_ADDRESS) || defined(ARN_SANITIZE_THREAD)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
using ModelPtr = std::unique_ptr<arn_model, CloseModel>;

struct DestroySession {
  void operator()(arn_session* session) const { arn_session_destroy(session); }
};
using SessionPtr = std::unique_ptr<arn_session, DestroySession>;

inline ModelPtr OpenBytes(const BundleBytes& bytes) {
  arn_model* model = nullptr;
  char error[512];
  const arn_status status =
      arn_model_open_memory(bytes.data(), bytes.size(), nullptr, error, sizeof error, &model);
  EXPECT_EQ(ARN_OK, status) << error;
  return ModelPtr(model);
}

inline SessionPtr NewSession(const arn_model* model, const arn_session_options& options,
                             void* memory = nullptr, uint64_t bytes = 0) {
  arn_session* session = nullptr;
  char error[512];
  const arn_status status =
      arn_session_create(model, &options, memory, bytes, error, sizeof error, &session);
  EXPECT_EQ(ARN_OK, status) << error;
  return SessionPtr(session);
}

// Returns n ids below `vocab`, the same in every call.
inline std::vector<int32_t> SomeIds(size_t n, uint32_t vocab) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((i * 7 + 3) % vocab));
  return ids;
}

// Prefills `prompt` and decodes `n` tokens greedily.
inline std::vector<int32_t> Greedy(arn_session* session, const std::vector<int32_t>& prompt,
                                   size_t n) {
  EXPECT_EQ(ARN_OK, arn_session_prefill(session, prompt.data(), prompt.size()))
      << arn_session_last_error(session);
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids) {
    EXPECT_EQ(ARN_OK, arn_session_decode(session, &id)) << arn_session_last_error(session);
  }
  return ids;
}

}  // namespace arn::test
