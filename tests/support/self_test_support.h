// Makes bundles with a device self-test as the converter does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/prefix_support.h"

namespace arn::test {

inline constexpr uint32_t kSelfTestTokens = 17;  // in runs of 12, 1 and 4

// Returns `bundle` with a self-test of SomeIds, computed by the CPU backend.
inline TinyBundle WithSelfTest(TinyBundle bundle) {
  bundle.self_test = TinySelfTest();
  const BundleBytes plain = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(plain);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = kSelfTestTokens;
  options.n_threads = 1;
  const SessionPtr session = NewSession(model.get(), options);
  TinySelfTest test = {
      SomeIds(kSelfTestTokens, bundle.vocab), {12, 1, 4}, {}, {}, IndexHash(plain)};
  const int32_t* next = test.ids.data();
  for (const uint32_t n : test.run_tokens) {
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), next, n));
    EXPECT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
    float largest = 0.0f;
    for (uint32_t i = 0; i < bundle.vocab; ++i) largest = std::max(largest, std::fabs(logits[i]));
    test.scales.push_back(largest / 32767.0f);
    for (uint32_t i = 0; i < bundle.vocab; ++i) {
      test.logits.push_back(static_cast<int16_t>(std::lrint(logits[i] / largest * 32767.0f)));
    }
    next += n;
  }
  bundle.self_test = test;
  return bundle;
}

}  // namespace arn::test
