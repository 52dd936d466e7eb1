// Saves and restores session state in tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "arenite/arenite.h"

namespace arn::test {

inline std::vector<uint8_t> Save(arn_session* session) {
  uint64_t bytes = 0, written = 0;
  EXPECT_EQ(ARN_OK, arn_session_save_bytes(session, &bytes)) << arn_session_last_error(session);
  std::vector<uint8_t> state(bytes, 0xA5);
  EXPECT_EQ(ARN_OK, arn_session_save_memory(session, state.data(), state.size(), &written))
      << arn_session_last_error(session);
  EXPECT_EQ(bytes, written);
  return state;
}

inline arn_status Restore(arn_session* session, const std::vector<uint8_t>& state,
                          uint32_t verify = ARN_VERIFY_DEFAULT) {
  arn_restore_options options = ARN_RESTORE_OPTIONS_INIT;
  options.verify = verify;
  return arn_session_restore_memory(session, state.data(), state.size(), &options);
}

// Samples n tokens from the selected sequence.
inline std::vector<int32_t> Decode(arn_session* session, size_t n) {
  std::vector<int32_t> ids(n, -1);
  for (int32_t& id : ids) {
    EXPECT_EQ(ARN_OK, arn_session_decode(session, &id)) << arn_session_last_error(session);
  }
  return ids;
}

inline std::vector<int32_t> TokensOf(const arn_session* session) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  EXPECT_EQ(ARN_OK, arn_session_tokens(session, &ids, &n));
  return std::vector<int32_t>(ids, ids + n);
}

}  // namespace arn::test
