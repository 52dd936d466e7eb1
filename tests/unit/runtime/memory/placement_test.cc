// CPUs that a session's threads stay on.
#include "runtime/memory/placement.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/fake_system.h"
#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// The lowest CPU of the process.
uint32_t FirstCpu(const CpuMask& mask) {
  uint32_t cpu = 0;
  while (!mask.Has(cpu)) ++cpu;
  return cpu;
}

class Placement : public PlannedSession {
 protected:
  Placement() : allowed_(ReadTopology().allowed) {}
  CpuMask allowed_;
};

TEST_F(Placement, OnlyThreads_ArePlaced) {
  backend_ = DescribedDevice();
  for (const CpuChoice cpus : {CpuChoice::kPerformance, CpuChoice::kMask}) {
    options_.cpus = cpus;
    ExpectRefused(Status::kUnsupported, "cpus: the device backend has no threads to place");
  }
  for (const CpuChoice cpus : {CpuChoice::kAuto, CpuChoice::kAll}) {
    options_.cpus = cpus;
    EXPECT_EQ(cpus, Applied().cpus);
    EXPECT_FALSE(plan_->keeps_cpus);
  }
}

TEST_F(Placement, MasksAreAskedFor) {
  options_.cpus = CpuChoice::kMask;
  ExpectRefused(Status::kBadArgument,
                "cpu_mask has 0 CPUs, expected some with ARN_CPUS_MASK and none without");
  options_.cpus = CpuChoice::kAuto;
  options_.cpu_mask = 3;
  ExpectRefused(Status::kBadArgument,
                "cpu_mask has 2 CPUs, expected some with ARN_CPUS_MASK and none without");
}

TEST_F(Placement, MasksAreOfTheProcess) {
  const uint64_t ours = allowed_.word(0);
  if (ours == 0) GTEST_SKIP() << "none of the first 64 CPUs is ours";
  options_.cpus = CpuChoice::kMask;
  options_.cpu_mask = ours & (~ours + 1);
  EXPECT_EQ(1u, Applied().n_threads);
  EXPECT_EQ(CpuMask::Of(options_.cpu_mask), plan_->cpus);
  EXPECT_TRUE(plan_->keeps_cpus);
  if (~ours == 0) GTEST_SKIP() << "the first 64 CPUs are all ours";
  options_.cpu_mask = ~ours & (ours + 1);
  ExpectRefused(Status::kUnsupported,
                "cpu_mask " + Hex(options_.cpu_mask) +
                    " has CPUs that the process may not use: of the first 64 it may use " +
                    Hex(ours));
}

TEST_F(Placement, Threads_AreAsManyAsTheirCpus) {
  const FakeSystem system;  // says nothing: all CPUs are alike
  options_.system_root = system.root();
  for (const CpuChoice cpus : {CpuChoice::kAuto, CpuChoice::kAll, CpuChoice::kPerformance}) {
    options_.cpus = cpus;
    EXPECT_EQ(std::min(allowed_.count(), kMaxThreads), Applied().n_threads);
    EXPECT_EQ(plan_->options.n_threads, plan_->options.n_prefill_threads);
    EXPECT_EQ(allowed_, plan_->cpus);
    EXPECT_EQ(cpus == CpuChoice::kPerformance, plan_->keeps_cpus);
  }
  options_.n_threads = 3;
  EXPECT_EQ(3u, Applied().n_prefill_threads);
  options_.n_prefill_threads = 2;
  EXPECT_EQ(2u, Applied().n_prefill_threads);
  EXPECT_EQ(3u, plan_->options.n_threads);
}

TEST_F(Placement, FewThreads_StayOnFastCpus) {
  if (allowed_.count() < 2) GTEST_SKIP() << "one CPU has no others beside it";
  const uint32_t fast = FirstCpu(allowed_);
  FakeSystem system;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (allowed_.Has(cpu)) system.Cpu(cpu, "cpu_capacity", cpu == fast ? "1024\n" : "100\n");
  }
  CpuMask performance;
  performance.Add(fast);
  options_.system_root = system.root();
  EXPECT_EQ(1u, Applied().n_threads);
  EXPECT_EQ(performance, plan_->cpus);
  EXPECT_TRUE(plan_->keeps_cpus);
  options_.n_prefill_threads = 2;
  ExpectPlanned();
  EXPECT_FALSE(plan_->keeps_cpus);
  options_.n_prefill_threads = 1;
  options_.n_threads = 2;
  ExpectPlanned();
  EXPECT_FALSE(plan_->keeps_cpus);
  options_.cpus = CpuChoice::kPerformance;
  ExpectPlanned();
  EXPECT_TRUE(plan_->keeps_cpus);
  EXPECT_EQ(performance, plan_->cpus);
  options_.cpus = CpuChoice::kAll;
  ExpectPlanned();
  EXPECT_FALSE(plan_->keeps_cpus);
  EXPECT_EQ(allowed_, plan_->cpus);
  options_.cpus = CpuChoice::kAuto;
  options_.n_threads = options_.n_prefill_threads = 1;
  backend_ = DescribedDevice();
  ExpectPlanned();
  EXPECT_FALSE(plan_->keeps_cpus);
}

}  // namespace
}  // namespace arn::test
