// Private dirty memory during generation: the KV cache and little more. Weights are used from the
// shared mapping.
#include <arenite/arenite.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr int64_t kSlackBytes = int64_t{8} << 20;

// Private dirty bytes of this process; -1 if the system does not report them.
int64_t PrivateDirtyBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    long long kb = 0;
    if (std::sscanf(line.c_str(), "Private_Dirty: %lld kB", &kb) == 1) return kb * 1024;
  }
  return -1;
}

TEST(PrivateDirtyTest, Written_IsSeen) {
  const int64_t before = PrivateDirtyBytes();
  if (before < 0) GTEST_SKIP() << "no /proc/self/smaps_rollup";
  const std::vector<char> written(size_t{32} << 20, 1);
  EXPECT_GE(PrivateDirtyBytes() - before, int64_t{31} << 20);
  EXPECT_EQ(1, written.back());
}

// The float weights are larger than the limit: a copy of them would show.
TEST(PrivateDirtyTest, After128Tokens_AtMostKvAndEightMebibytes) {
  ARN_NEEDS_CONVERTER();
  const int64_t before = PrivateDirtyBytes();
  if (before < 0) GTEST_SKIP() << "no /proc/self/smaps_rollup";
  TempFolder folder;
  const std::string bundle = (folder / "fable.arn").string();
  ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "f32"}));

  arn_model* model = nullptr;
  arn_session* session = nullptr;
  char error[256] = "";
  ASSERT_EQ(ARN_OK, arn_model_open(bundle.c_str(), nullptr, error, sizeof error, &model)) << error;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 512;
  ASSERT_EQ(ARN_OK, arn_session_create(model, &options, nullptr, 0, error, sizeof error, &session))
      << error;
  const std::string prompt = "Once upon a time";
  int32_t ids[16];
  size_t n_ids = 0;
  ASSERT_EQ(ARN_OK, arn_tokenize(model, prompt.data(), prompt.size(), ARN_TOKENIZE_DEFAULT, nullptr,
                                 0, ids, 16, &n_ids));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids, n_ids));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 128;
  generate.ignore_eos = 1;
  ASSERT_EQ(ARN_OK, arn_session_generate(session, &generate, nullptr));

  const int64_t dirty = PrivateDirtyBytes() - before;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  ASSERT_EQ(ARN_OK, arn_session_stats(session, &stats));
  ASSERT_GT(stats.weight_bytes_per_token, static_cast<uint64_t>(kSlackBytes));
  EXPECT_LE(dirty, static_cast<int64_t>(stats.kv_used_bytes) + kSlackBytes)
      << "KV used: " << stats.kv_used_bytes;
  arn_session_destroy(session);
  arn_model_close(model);
}

}  // namespace
}  // namespace arn::test
