// Cached against uncached decoding: with f32 KV both give the same logits for every layer type.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t backend, uint32_t context = 128) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.n_threads = 1;
  options.context_tokens = context;
  options.kv_page_tokens = 8;
  return options;
}

class SessionCacheTest : public testing::TestWithParam<Shape> {
 protected:
  SessionCacheTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.layer_kinds = GetParam().layers;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

TEST_P(SessionCacheTest, PrefillAndDecode_EqualNoCache) {
  for (uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = Options(backend);
    options.no_cache = 1;
    const SessionPtr truth = NewSession(model_.get(), options);
    for (uint32_t chunk : {1u, 7u, 16u, 64u}) {
      SCOPED_TRACE("chunk " + std::to_string(chunk));
      options.no_cache = 0;
      options.prefill_chunk = chunk;
      const SessionPtr session = NewSession(model_.get(), options);
      const std::vector<int32_t> prompt = SomeIds(50, kVocab);
      ASSERT_EQ(ARN_OK, arn_session_reset(truth.get()));
      for (arn_session* s : {truth.get(), session.get()}) {
        ASSERT_EQ(ARN_OK, arn_session_prefill(s, prompt.data(), prompt.size()));
      }
      for (int i = 0; i < 60; ++i) {
        ASSERT_LT(LogitDifference(truth.get(), session.get(), kVocab), 3e-5) << "step " << i;
        int32_t expected = 0, found = 0;
        ASSERT_EQ(ARN_OK, arn_session_decode(truth.get(), &expected));
        ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &found));
        ASSERT_EQ(expected, found) << "step " << i;
      }
    }
  }
}

// The CPU backend also matches the reference with quantised caches.
TEST_P(SessionCacheTest, EveryKvType_BackendsAgree) {
  for (uint32_t kv : {ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2}) {
    SCOPED_TRACE("kv " + std::to_string(kv));
    arn_session_options options = Options(ARN_BACKEND_CPU);
    options.kv_type = kv;
    options.prefill_chunk = 13;
    if (kv >= ARN_KV_INT4) options.kv_residual = 16;
    const SessionPtr cpu = NewSession(model_.get(), options);
    options.backend = ARN_BACKEND_REFERENCE;
    const SessionPtr reference = NewSession(model_.get(), options);
    const std::vector<int32_t> ids = SomeIds(100, kVocab);
    for (arn_session* s : {cpu.get(), reference.get()}) {
      ASSERT_EQ(ARN_OK, arn_session_prefill(s, ids.data(), ids.size()));
    }
    // A value on the border of two int8 steps may round either way.
    EXPECT_LT(LogitDifference(cpu.get(), reference.get(), kVocab), kv == ARN_KV_F16    ? 2e-3
                                                                   : kv == ARN_KV_INT8 ? 2e-2
                                                                                       : 0.1);
  }
}

TEST_P(SessionCacheTest, Rewind_ThenTheSameTokens_SameLogits) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  const SessionPtr truth = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  const std::vector<int32_t> ids = SomeIds(80, kVocab), others = SomeIds(30, 17);
  for (int32_t id : ids) ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &id, 1));
  const uint32_t first = arn_session_first_rewind_position(session.get());
  if (HasState(GetParam())) {
    EXPECT_EQ(80u, first);
    EXPECT_EQ(ARN_BAD_STATE, arn_session_rewind(session.get(), 0));
    EXPECT_EQ(ARN_OK, arn_session_rewind(session.get(), 80));
    EXPECT_EQ(ARN_BAD_STATE, arn_session_rewind(session.get(), 79));
    EXPECT_STREQ(
        "position 79: the model has layers with a recurrent state, which cannot be rewound from "
        "position 80 without snapshots (state_snapshots of the session options); reset and prefill "
        "again",
        arn_session_last_error(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), ids.data(), ids.size()));
    EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 3e-5);
    return;
  }
  ASSERT_LT(first, 80u);
  if (first > 0) {
    EXPECT_EQ(ARN_BAD_STATE, arn_session_rewind(session.get(), first - 1));
    EXPECT_NE(std::string::npos,
              std::string(arn_session_last_error(session.get())).find(std::to_string(first)));
    EXPECT_EQ(80u, arn_session_length(session.get()));
  }
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_rewind(session.get(), 81));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), first));
  EXPECT_EQ(first, arn_session_length(session.get()));
  const float* logits = nullptr;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_logits(session.get(), &logits));
  std::vector<int32_t> whole(ids.begin(), ids.begin() + first);
  whole.insert(whole.end(), others.begin(), others.end());
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), others.data(), others.size()));
  ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), whole.data(), whole.size()));
  EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 3e-5);
  const int32_t* kept = nullptr;
  uint32_t n_kept = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &kept, &n_kept));
  EXPECT_EQ(whole, std::vector<int32_t>(kept, kept + n_kept));
}

INSTANTIATE_TEST_SUITE_P(Layers, SessionCacheTest, testing::ValuesIn(Shapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Widths, SessionCacheTest, testing::ValuesIn(WidthShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(StateWidths, SessionCacheTest, testing::ValuesIn(StateWidthShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(LinearAttention, SessionCacheTest, testing::ValuesIn(LinearShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(States, SessionCacheTest, testing::ValuesIn(StateShapes()), ShapeName);

uint64_t OwnResidentBytes() {
  FILE* statm = std::fopen("/proc/self/statm", "r");
  unsigned long long pages = 0, resident = 0;
  EXPECT_EQ(2, std::fscanf(statm, "%llu %llu", &pages, &resident));
  std::fclose(statm);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// The pool of a window holds only the window, for any context: its pages are recycled.
TEST(SessionCache_Window, TwentyThousandTokens_ResidentMemoryStaysFlat) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layers = 2;
  bundle.window = 64;
  bundle.max_context = 20480;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_BACKEND_CPU, 20480);
  options.kv_type = ARN_KV_INT8;
  options.prefill_chunk = 16;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(200, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  const uint64_t before = OwnResidentBytes();
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  uint64_t most = 0;
  for (int i = 0; i < 20000; ++i) {
    int32_t id = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    most = std::max(most, stats.kv_used_bytes);
  }
  // 63 + 16 tokens starting at any offset in pages of 8: at most 11 pages of 2 layers, each K and V
  // [2, 8, 8] int8 and their scales [2, 8].
  EXPECT_LE(most, 11u * 2 * 2 * (128 + 64));
  // Token ids grow by four bytes per token; everything else was allocated before. Sanitizers add
  // shadow memory.
  const uint64_t sanitizer = kIsSanitized ? uint64_t{16} << 20 : 0;
  EXPECT_LE(OwnResidentBytes(), before + 20000 * 4 + 256 * 1024 + sanitizer);
}

TEST(SessionCache_Trim, AfterReset_PagesGoBackToTheOs) {
  TinyBundle bundle;
  bundle.layers = 4;
  bundle.kv_heads = 4;
  bundle.head_dim = 64;
  bundle.max_context = 8192;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(ARN_BACKEND_CPU, 8192));
  const std::vector<int32_t> prompt = SomeIds(800, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  const uint64_t used = OwnResidentBytes();
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 100));
  uint64_t trimmed = 0;
  ASSERT_EQ(ARN_OK, arn_session_trim(session.get(), &trimmed));
  const uint64_t per_token = 4 * 2 * 4 * 64 * 4;
  EXPECT_GE(trimmed, 690 * per_token);
  EXPECT_LE(OwnResidentBytes() + 650 * per_token, used);
  // The remaining tokens stay valid, and trimmed pages are allocated again on use.
  const SessionPtr truth = NewSession(model.get(), Options(ARN_BACKEND_CPU, 8192));
  ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), prompt.data(), 300));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data() + 100, 200));
  EXPECT_LT(LogitDifference(session.get(), truth.get(), bundle.vocab), 3e-5);
}

TEST(SessionCache_Trim, CallersMemory_IsRefused) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  const arn_session_options options = Options(ARN_BACKEND_CPU);
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &options, nullptr, 0, &plan));
  std::vector<uint8_t> memory(plan.total_bytes + plan.alignment);
  const auto base = reinterpret_cast<uintptr_t>(memory.data());
  uint8_t* block = memory.data() + (plan.alignment - base % plan.alignment) % plan.alignment;
  const SessionPtr session = NewSession(model.get(), options, block, plan.total_bytes);
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_trim(session.get(), nullptr));
}

}  // namespace
}  // namespace arn::test
