// Sessions whose pages lie on a device: what moves pages, and what reads and writes them from
// outside, gives the same as in host memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t backend, uint32_t kv_type, uint32_t sequences = 1) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = kv_type;
  options.n_threads = 1;
  options.context_tokens = 64;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 13;
  options.max_sequences = sequences;
  if (kv_type == ARN_KV_INT4 || kv_type == ARN_KV_INT2) options.kv_residual = 16;
  return options;
}

class VulkanSessionTest : public testing::TestWithParam<uint32_t> {
 protected:
  VulkanSessionTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.max_context = 512;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  void SetUp() override {
    arn_session* session = nullptr;
    char error[512] = "";
    const arn_session_options options = Options(ARN_BACKEND_VULKAN, ARN_KV_F32);
    const arn_status status =
        arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session);
    arn_session_destroy(session);
    if (status == ARN_UNSUPPORTED && std::string(error).find("Vulkan: ") == 0) {
      GTEST_SKIP() << error;
    }
    ASSERT_EQ(ARN_OK, status) << error;
  }
  SessionPtr New(uint32_t backend, uint32_t sequences = 1) {
    return NewSession(model_.get(), Options(backend, GetParam(), sequences));
  }
  void Prefill(arn_session* session, uint32_t n) {
    const std::vector<int32_t> ids = SomeIds(n, kVocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
        << arn_session_last_error(session);
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

TEST_P(VulkanSessionTest, SavedOnOneBackend_RestoredOnTheOther_GoesOn) {
  const uint32_t backends[2] = {ARN_BACKEND_VULKAN, ARN_BACKEND_CPU};
  for (uint32_t first = 0; first < 2; ++first) {
    SCOPED_TRACE(first);
    const SessionPtr saved = New(backends[first]);
    Prefill(saved.get(), 37);
    Decode(saved.get(), 3);
    const std::vector<uint8_t> state = Save(saved.get());
    const std::vector<int32_t> expected = Decode(saved.get(), 12);
    const SessionPtr restored = New(backends[1 - first]);
    Prefill(restored.get(), 9);
    ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
    EXPECT_EQ(state, Save(restored.get()));
    EXPECT_EQ(expected, Decode(restored.get(), 12));
  }
}

TEST_P(VulkanSessionTest, ForkedAndRewound_EachGoesOnAsOnTheCpu) {
  std::vector<std::vector<int32_t>> tokens[2];
  const uint32_t backends[2] = {ARN_BACKEND_VULKAN, ARN_BACKEND_CPU};
  for (uint32_t b = 0; b < 2; ++b) {
    const SessionPtr session = New(backends[b], 3);
    Prefill(session.get(), 27);
    for (const uint32_t to : {1u, 2u}) {
      ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, to));
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), to));
      const std::vector<int32_t> more = SomeIds(to + 2, kVocab);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), more.data(), more.size()));
    }
    for (const uint32_t s : {0u, 1u, 2u}) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      tokens[b].push_back(Decode(session.get(), 10));
    }
  }
  EXPECT_EQ(tokens[0], tokens[1]);
}

TEST_P(VulkanSessionTest, ShiftedContext_GoesOnAsOnTheCpu) {
  std::vector<int32_t> tokens[2];
  const uint32_t backends[2] = {ARN_BACKEND_VULKAN, ARN_BACKEND_CPU};
  for (uint32_t b = 0; b < 2; ++b) {
    arn_session_options options = Options(backends[b], GetParam());
    options.overflow = ARN_OVERFLOW_SHIFT;
    options.pinned_tokens = 8;
    const SessionPtr session = NewSession(model_.get(), options);
    Prefill(session.get(), 60);
    tokens[b] = Decode(session.get(), 24);
  }
  EXPECT_EQ(tokens[0], tokens[1]);
}

TEST_P(VulkanSessionTest, KvFileAndTrim_AreRefused) {
  arn_session_options options = Options(ARN_BACKEND_VULKAN, GetParam());
  options.kv_file = "/nonexistent/pages";
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[512] = "";
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  const SessionPtr session = New(ARN_BACKEND_VULKAN);
  uint64_t bytes = 0;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_trim(session.get(), &bytes));
}

TEST_P(VulkanSessionTest, Plan_CountsTheDeviceApartFromTheBlock) {
  const arn_session_options options = Options(ARN_BACKEND_VULKAN, GetParam());
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &plan));
  EXPECT_EQ(plan.total_bytes, plan.constants_bytes + plan.io_bytes);
  EXPECT_GT(plan.device_bytes, plan.kv_bytes + plan.activations_bytes);
}

INSTANTIATE_TEST_SUITE_P(KvTypes, VulkanSessionTest,
                         testing::Values(ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4,
                                         ARN_KV_INT2));

}  // namespace
}  // namespace arn::test
