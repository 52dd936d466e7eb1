// The cost of a token depends on the tokens before it, not on the context capacity.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/session_support.h"
#include "tests/support/test_time.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61, kDepth = 1024, kDecodes = 32;

SessionPtr SessionAtDepth(const arn_model* model, uint32_t context) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = context;
  options.n_threads = 1;
  SessionPtr session = NewSession(model, options);
  const std::vector<int32_t> prompt = SomeIds(kDepth, kVocab);
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  return session;
}

uint64_t KvBytesRead(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats.kv_bytes_read_per_token;
}

// Returns the time in seconds of the fastest decode from the depth on, as CPU time of this thread,
// so that other load does not matter.
double DecodeTime(arn_session* session) {
  EXPECT_EQ(ARN_OK, arn_session_rewind(session, kDepth - 1));
  const int32_t last = 5;
  EXPECT_EQ(ARN_OK, arn_session_prefill(session, &last, 1));
  double fastest = 1e9;
  for (uint32_t i = 0; i < kDecodes; ++i) {
    int32_t id = 0;
    const double begin = ThreadSeconds();
    EXPECT_EQ(ARN_OK, arn_session_decode(session, &id));
    fastest = std::min(fastest, ThreadSeconds() - begin);
  }
  return fastest;
}

TEST(SessionDepth, SixteenTimesTheCapacity_CostsTheSamePerToken) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layers = 4;
  bundle.head_dim = 64;
  bundle.max_context = 32768;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr small = SessionAtDepth(model.get(), 2048);
  const SessionPtr large = SessionAtDepth(model.get(), 32768);
  EXPECT_EQ(KvBytesRead(small.get()), KvBytesRead(large.get()));
  // 4 layers, K and V, 2 heads of 64 int8 with one scale each.
  EXPECT_EQ(uint64_t{kDepth} * 4 * 2 * 2 * (64 + 4), KvBytesRead(small.get()));

  // Alternates the two. A cost proportional to the capacity would be sixteen times as high.
  double small_time = 1e9, large_time = 1e9;
  for (int round = 0; round < 15; ++round) {
    small_time = std::min(small_time, DecodeTime(small.get()));
    large_time = std::min(large_time, DecodeTime(large.get()));
  }
  RecordProperty("small_us", std::to_string(small_time * 1e6));
  RecordProperty("large_us", std::to_string(large_time * 1e6));
  EXPECT_LT(large_time, 1.5 * small_time);
}

}  // namespace
}  // namespace arn::test
