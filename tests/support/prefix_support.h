// Makes bundles with a precomputed prefix as the converter does: runs the bundle without the prefix
// and stores the saved session state in it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/bundle/bundle.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {

inline uint64_t IndexHash(const BundleBytes& bytes) {
  BundleHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.index_hash;
}

// Returns `bundle` with the prefix `ids`, computed by a session with `options`.
inline TinyBundle WithPrefix(TinyBundle bundle, const arn_session_options& options,
                             const std::vector<int32_t>& ids) {
  bundle.prefix = TinyPrefix();
  const BundleBytes plain = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(plain);
  const SessionPtr session = NewSession(model.get(), options);
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()))
      << arn_session_last_error(session.get());
  bundle.prefix = {ids, Save(session.get()), IndexHash(plain)};
  return bundle;
}

}  // namespace arn::test
