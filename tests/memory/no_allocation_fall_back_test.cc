// No allocation, in the library or through it in the driver, when a device fails and the CPU
// recomputes everything.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kernels/cpu/backend_cpu.h"
#include "runtime/session/session.h"
#include "tests/memory/allocation_trap.h"
#include "tests/support/faulty_backends.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

struct Case {
  const Backend* (*backend)();
  const char* name;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class NoAllocationFallBackTest : public testing::TestWithParam<Case> {};

TEST_P(NoAllocationFallBackTest, DeviceThatFails_AllocatesNothing) {
  const std::string problem = NoVulkan();
  if (!problem.empty()) GTEST_SKIP() << problem;
  fault_plan = FaultPlan();
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr handle = OpenBytes(bytes);
  const auto& model = *reinterpret_cast<const Model*>(handle.get());
  SessionOptions options;
  options.n_threads = 2;
  options.context_tokens = 128;
  options.max_sequences = 3;
  options.fallback = CpuBackend();
  options.trusts_device = true;
  SessionPlan plan;
  Diag diag;
  ASSERT_EQ(Status::kOk,
            PlanSession(model, GetParam().backend(), options, Session::Objects(), &plan, &diag))
      << diag.text();
  std::vector<std::byte> block(plan.TotalBytes() + kRegionAlign);
  void* at = block.data();
  size_t room = block.size();
  std::align(kRegionAlign, plan.TotalBytes(), at, room);
  Session* session = nullptr;
  ASSERT_EQ(Status::kOk,
            Session::Create(model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {},
                            &session, &diag))
      << diag.text();
  // Sequences that share pages and diverge.
  const std::vector<int32_t> ids = SomeIds(70, 61);
  ASSERT_EQ(Status::kOk, session->Prefill({ids.data(), 50}));
  ASSERT_EQ(Status::kOk, session->Fork(0, 1));
  ASSERT_EQ(Status::kOk, session->Select(1));
  ASSERT_EQ(Status::kOk, session->Prefill({ids.data() + 60, 4}));

  // The driver frees the memory of a submission on its own thread after the fence.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  const uint64_t driver_calls = vulkan::DriverMemoryOf(fault_plan.state).n_calls;
  g_calls = 0;
  g_trap = true;
  Status status = session->Prefill({ids.data() + 64, 5});
  for (int i = 0; i < 3 && status == Status::kOk; ++i) {
    int32_t id = 0;
    status = session->Decode(&id);
  }
  g_trap = false;

  EXPECT_EQ(Status::kOk, status) << session->diag()->text();
  EXPECT_EQ(0u, g_calls.load());
  EXPECT_EQ(driver_calls, vulkan::DriverMemoryOf(fault_plan.state).n_calls);
  EXPECT_STREQ("cpu", session->executor().backend().name);
  EXPECT_EQ(62u, session->sequences().length());
  Session::Destroy(session);
}

INSTANTIATE_TEST_SUITE_P(VulkanBackends, NoAllocationFallBackTest,
                         testing::Values(Case{FaultyBackend, "Vulkan"},
                                         Case{FaultySplitBackend<false>, "Split"},
                                         Case{FaultySplitBackend<true>, "SplitCopied"}),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace arn::test
