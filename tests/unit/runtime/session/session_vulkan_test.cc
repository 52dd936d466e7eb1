// Sessions with pages on a device: moving, reading and writing pages gives the same results as in
// host memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/state_support.h"
#include "tests/support/vulkan_session.h"

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
  options.trust_device = 1;
  if (kv_type == ARN_KV_INT4 || kv_type == ARN_KV_INT2) options.kv_residual = 16;
  return options;
}

TinyBundle Bundle() {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = 512;
  return bundle;
}

class VulkanSessionTest : public OnVulkan<testing::TestWithParam<uint32_t>> {
 protected:
  VulkanSessionTest() : OnVulkan(Bundle()) {}
  SessionPtr New(uint32_t backend, uint32_t sequences = 1) {
    return NewSession(model_.get(), Options(backend, GetParam(), sequences));
  }
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
  std::vector<std::vector<int32_t>> tokens[3];
  const uint32_t backends[3] = {ARN_BACKEND_VULKAN, ARN_BACKEND_CPU, ARN_BACKEND_VULKAN_CPU};
  for (uint32_t b = 0; b < 3; ++b) {
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
  EXPECT_EQ(tokens[0], tokens[2]);
}

TEST_P(VulkanSessionTest, ShiftedContext_GoesOnAsOnTheCpu) {
  std::vector<int32_t> tokens[3];
  const uint32_t backends[3] = {ARN_BACKEND_VULKAN, ARN_BACKEND_CPU, ARN_BACKEND_VULKAN_CPU};
  for (uint32_t b = 0; b < 3; ++b) {
    arn_session_options options = Options(backends[b], GetParam());
    options.overflow = ARN_OVERFLOW_SHIFT;
    options.pinned_tokens = 8;
    const SessionPtr session = NewSession(model_.get(), options);
    Prefill(session.get(), 60);
    tokens[b] = Decode(session.get(), 24);
  }
  EXPECT_EQ(tokens[0], tokens[2]);
  EXPECT_EQ(tokens[0], tokens[1]);
}

// Returns all keys and values of the selected sequence.
std::vector<float> KvOf(arn_session* session) {
  const uint32_t n = arn_session_length(session);
  std::vector<float> all;
  for (uint32_t layer = 0; layer < 2; ++layer) {
    std::vector<float> keys(size_t{2} * n * 8), values(keys.size());
    EXPECT_EQ(ARN_OK, arn_session_read_kv(session, layer, 0, n, keys.data(), values.data()))
        << arn_session_last_error(session);
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The GPU prefills: the pages equal a GPU session's bit for bit. The CPU continues on them, and
// they move back for the next prompt.
TEST_P(VulkanSessionTest, VulkanAndCpu_PagesGoWhereTheyAreNeeded) {
  const SessionPtr both = New(ARN_BACKEND_VULKAN_CPU, 3), gpu = New(ARN_BACKEND_VULKAN, 3);
  const SessionPtr cpu = New(ARN_BACKEND_CPU, 3);
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_session_backend(both.get(), &info));
  EXPECT_EQ(std::string("vulkan+cpu"), info.name);
  EXPECT_NE(std::string(), info.device);
  EXPECT_EQ(std::string(), info.reason);
  Prefill(both.get(), 29);
  Prefill(gpu.get(), 29);
  EXPECT_EQ(KvOf(gpu.get()), KvOf(both.get()));
  const std::vector<uint8_t> of_prompt = Save(gpu.get());
  // The CPU decodes from those pages as in a CPU session.
  ASSERT_EQ(ARN_OK, Restore(cpu.get(), of_prompt));
  EXPECT_EQ(Decode(cpu.get(), 5), Decode(both.get(), 5));
  EXPECT_EQ(KvOf(cpu.get()), KvOf(both.get()));
  // A fork and another prompt on pages written by the CPU.
  ASSERT_EQ(ARN_OK, Restore(gpu.get(), Save(both.get())));
  for (arn_session* session : {both.get(), gpu.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_fork(session, 0, 1));
    ASSERT_EQ(ARN_OK, arn_session_select(session, 1));
    Prefill(session, 11);
  }
  EXPECT_EQ(KvOf(gpu.get()), KvOf(both.get()));
  ASSERT_EQ(ARN_OK, Restore(both.get(), of_prompt));
  ASSERT_EQ(ARN_OK, Restore(cpu.get(), of_prompt));
  EXPECT_EQ(Decode(cpu.get(), 8), Decode(both.get(), 8));
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
