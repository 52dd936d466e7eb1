// Chunks of a prompt: what is planned, and what a device then chooses.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/backend_cpu.h"
#include "runtime/session/session.h"
#include "tests/support/session_support.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61, kTokens = 600;

// Rows of the prompt's runs on the device and on its fallback, and what the device wants.
struct Chunks {
  std::vector<size_t> on_device, on_cpu;
  uint32_t wanted = 0;
  uint32_t most_planned = UINT32_MAX;  // rows that the device's backend takes
  bool is_lost = false;
};
Chunks chunks;

Status RunOnDevice(void* state, const RunArgs& args, Diag* diag) {
  if (chunks.is_lost) return diag->Fail(Status::kDeviceLost, "the device of the test is lost");
  chunks.on_device.push_back(args.tokens.size());
  return VulkanBackend()->run(state, args, diag);
}

Status RunOnCpu(void* state, const RunArgs& args, Diag* diag) {
  chunks.on_cpu.push_back(args.tokens.size());
  return CpuBackend()->run(state, args, diag);
}

Status PlanUpTo(const Program& program, const BackendOptions& options, Layout* layout,
                BackendPlan* plan, Diag* diag) {
  if (program.max_rows > chunks.most_planned) {
    return diag->Fail(Status::kUnsupported, "%u rows are too many", program.max_rows);
  }
  return VulkanBackend()->plan(program, options, layout, plan, diag);
}

const Backend* DescribedDevice() {
  static const DeviceOps ops = [] {
    DeviceOps device = *VulkanBackend()->device;
    device.chunk_rows = [](const void*) { return chunks.wanted; };
    return device;
  }();
  static const Backend backend = [] {
    Backend b = *VulkanBackend();
    b.plan = PlanUpTo;
    b.run = RunOnDevice;
    b.device = &ops;
    return b;
  }();
  return &backend;
}

const Backend* RecordingCpu() {
  static const Backend backend = [] {
    Backend b = *CpuBackend();
    b.run = RunOnCpu;
    return b;
  }();
  return &backend;
}

class VulkanChunkTest : public testing::Test {
 protected:
  VulkanChunkTest() {
    chunks = Chunks();
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.max_context = 1024;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
    options_.n_threads = 1;
    options_.trusts_device = true;
  }

  Status Plan(const Backend* backend, SessionPlan* out) {
    Diag diag;
    const auto& model = *reinterpret_cast<const Model*>(model_.get());
    return PlanSession(model, backend, options_, Session::Objects(), out, &diag);
  }
  uint32_t Planned(const Backend* backend) {
    SessionPlan plan;
    EXPECT_EQ(Status::kOk, Plan(backend, &plan));
    EXPECT_EQ(plan.program.max_rows, plan.options.prefill_chunk);
    return plan.options.prefill_chunk;
  }

  // Runs a prompt of kTokens on a new session, which stays.
  void Prefill(const Backend* backend) {
    SessionPlan plan;
    ASSERT_EQ(Status::kOk, Plan(backend, &plan));
    session_.reset();
    block_.assign(plan.TotalBytes() + kRegionAlign, std::byte{0xA5});
    void* at = block_.data();
    size_t room = block_.size();
    std::align(kRegionAlign, plan.TotalBytes(), at, room);
    Session* session = nullptr;
    Diag diag;
    const auto& model = *reinterpret_cast<const Model*>(model_.get());
    ASSERT_EQ(Status::kOk,
              Session::Create(model, plan,
                              {static_cast<std::byte*>(at), static_cast<size_t>(plan.TotalBytes())},
                              {}, &session, &diag))
        << diag.text();
    session_.reset(reinterpret_cast<arn_session*>(session));
    const std::vector<int32_t> ids = SomeIds(kTokens, kVocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session_.get(), ids.data(), ids.size()))
        << arn_session_last_error(session_.get());
  }

  using Rows = std::vector<size_t>;

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
  SessionOptions options_;
  std::vector<std::byte> block_;
  SessionPtr session_;  // in the block
};

TEST_F(VulkanChunkTest, Plan_OfADevice_HasRoomForTheLongest) {
  EXPECT_EQ(512u, Planned(VulkanBackend()));
  EXPECT_EQ(128u, Planned(CpuBackend()));
  options_.context_tokens = 200;
  EXPECT_EQ(200u, Planned(VulkanBackend()));
  options_.context_tokens = 0;
  options_.prefill_chunk = 100;
  EXPECT_EQ(100u, Planned(VulkanBackend()));
}

TEST_F(VulkanChunkTest, Plan_WhatALongChunkIsNotWorth_HasTheUsual) {
  options_.all_logits = true;
  EXPECT_EQ(128u, Planned(VulkanBackend()));
  options_.all_logits = false;
  options_.speculation = Speculation::kNgram;
  options_.fallback = CpuBackend();
  EXPECT_EQ(128u, Planned(VulkanBackend()));
}

TEST_F(VulkanChunkTest, Plan_MoreRowsThanTheBackendTakes_HasTheUsual) {
  chunks.most_planned = 511;
  EXPECT_EQ(128u, Planned(DescribedDevice()));
  chunks.most_planned = 512;
  EXPECT_EQ(512u, Planned(DescribedDevice()));
  chunks.most_planned = 100;
  SessionPlan plan;
  EXPECT_EQ(Status::kUnsupported, Plan(DescribedDevice(), &plan));
}

TEST_F(VulkanChunkTest, Prefill_RunsWhatTheDeviceWants) {
  if (const std::string problem = NoVulkan(); !problem.empty()) GTEST_SKIP() << problem;
  struct {
    uint32_t wanted;
    Rows expected;
  } const cases[] = {
      {512, {512, 88}},
      {128, {128, 128, 128, 128, 88}},
      {300, {300, 300}},
      {4096, {512, 88}},  // the plan has room for no more
  };
  for (const auto& c : cases) {
    chunks.wanted = c.wanted;
    chunks.on_device.clear();
    ASSERT_NO_FATAL_FAILURE(Prefill(DescribedDevice()));
    EXPECT_EQ(c.expected, chunks.on_device) << c.wanted;
  }
}

TEST_F(VulkanChunkTest, Prefill_ChunkOfTheCaller_IsTaken) {
  if (const std::string problem = NoVulkan(); !problem.empty()) GTEST_SKIP() << problem;
  chunks.wanted = 32;
  options_.prefill_chunk = 400;
  ASSERT_NO_FATAL_FAILURE(Prefill(DescribedDevice()));
  EXPECT_EQ((Rows{400, 200}), chunks.on_device);
}

TEST_F(VulkanChunkTest, Prefill_OnTheFallback_HasTheUsual) {
  if (const std::string problem = NoVulkan(); !problem.empty()) GTEST_SKIP() << problem;
  chunks.wanted = 512;
  options_.fallback = RecordingCpu();
  ASSERT_NO_FATAL_FAILURE(Prefill(DescribedDevice()));
  EXPECT_EQ((Rows{512, 88}), chunks.on_device);
  EXPECT_EQ(Rows(), chunks.on_cpu);
  // The tokens so far are computed again, then the run that failed.
  chunks.is_lost = true;
  const std::vector<int32_t> ids = SomeIds(200, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session_.get(), ids.data(), 150));
  EXPECT_EQ((Rows{128, 128, 128, 128, 88, 150}), chunks.on_cpu);
  chunks.on_cpu.clear();
  ASSERT_EQ(ARN_OK, arn_session_prefill(session_.get(), ids.data(), ids.size()));
  EXPECT_EQ((Rows{128, 72}), chunks.on_cpu);

  // Without a device from the beginning.
  options_.device = "no such GPU";
  chunks = Chunks();
  chunks.wanted = 512;
  ASSERT_NO_FATAL_FAILURE(Prefill(DescribedDevice()));
  EXPECT_EQ((Rows{128, 128, 128, 128, 88}), chunks.on_cpu);
}

}  // namespace
}  // namespace arn::test
