// Memory of programs that run a whole input at a time.
#include "runtime/memory/whole_input_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

class WholeInput : public testing::Test {
 protected:
  WholeInput() {
    plan_.backend = &backend_;
    plan_.Copy(model_->program);
    plan_.program.max_rows = 5;
  }
  Status Plan() {
    Layout layout;
    diag_.Clear();
    if (const auto added = layout.Add(Region::kIo, 1000); !added.ok()) return added.status();
    return PlanProgram(2, &layout, &plan_, &diag_);
  }

  OpenedModel model_{TinyBundle()};
  Backend backend_ = DescribedCpu();
  WholeInputPlan plan_;
  Diag diag_;
};

TEST_F(WholeInput, Copy_HasItsOwnValues) {
  EXPECT_EQ(plan_.values, plan_.program.values.data());
  EXPECT_EQ(plan_.ropes, plan_.program.ropes.data());
  EXPECT_EQ(model_->program.values.size(), plan_.program.values.size());
  EXPECT_EQ(model_->program.ropes.size(), plan_.program.ropes.size());
  EXPECT_EQ(model_->program.ropes[0].rotary_dim, plan_.program.ropes[0].rotary_dim);
  plan_.Copy(model_->program);
  EXPECT_EQ(1u, plan_.program.max_rows);
}

TEST_F(WholeInput, Copy_HasAllThatTheModelHasAndNoMore) {
  const Program& program = model_->program;
  const size_t n_values = program.values.size(), n_ropes = program.ropes.size();
  for (size_t i = 0; i < n_values; ++i) program.values[i].more_rows = static_cast<uint16_t>(i + 1);
  Value other_value;
  other_value.name = "other";
  RopeKind other_rope;
  other_rope.rotary_dim = 77;
  std::fill(plan_.values, std::end(plan_.values), other_value);
  std::fill(plan_.ropes, std::end(plan_.ropes), other_rope);
  plan_.Copy(program);
  for (size_t i = 0; i < n_values; ++i) {
    EXPECT_EQ(program.values[i].name, plan_.program.values[i].name) << i;
    EXPECT_EQ(i + 1, plan_.program.values[i].more_rows);
  }
  for (size_t i = 0; i < n_ropes; ++i) {
    EXPECT_EQ(program.ropes[i].inv_freq.data(), plan_.program.ropes[i].inv_freq.data()) << i;
  }
  EXPECT_EQ(other_value.name, plan_.values[n_values].name);
  EXPECT_EQ(other_rope.rotary_dim, plan_.ropes[n_ropes].rotary_dim);
}

TEST_F(WholeInput, Activations_LieOnADeviceThatIsAlone) {
  for (const bool is_device : {false, true}) {
    backend_ = is_device ? DescribedDevice() : DescribedCpu();
    plan_.fallback = nullptr;
    ASSERT_EQ(Status::kOk, Plan()) << diag_.text();
    const uint64_t activations = plan_.region_bytes[static_cast<uint32_t>(Region::kActivations)];
    EXPECT_GT(activations, 0u);
    EXPECT_EQ(is_device ? 0 : activations, plan_.BlockBytes(Region::kActivations));
    EXPECT_EQ(uint64_t{kRegionAlign}, plan_.BlockBytes(Region::kIo));
    EXPECT_EQ(plan_.BlockBytes(Region::kActivations) + kRegionAlign, plan_.TotalBytes());
    const Backend cpu = DescribedCpu();
    plan_.fallback = &cpu;
    ASSERT_EQ(Status::kOk, Plan()) << diag_.text();
    EXPECT_EQ(activations, plan_.BlockBytes(Region::kActivations));
    std::byte block;
    const Memory memory = PartitionBlock(plan_, &block);
    const Span<std::byte> io = memory.region[static_cast<uint32_t>(Region::kIo)],
                          values = memory.region[static_cast<uint32_t>(Region::kActivations)];
    EXPECT_EQ(&block, io.data());
    EXPECT_EQ(size_t{kRegionAlign}, io.size());
    EXPECT_EQ(&block + kRegionAlign, values.data());
    EXPECT_EQ(activations, values.size());
  }
}

uint32_t told[2];
Status PlanAsTold(const Program&, const BackendOptions& options, Layout*, BackendPlan*, Diag*) {
  told[0] = options.cpu.n_threads;
  told[1] = options.cpu.n_prefill_threads;
  return Status::kOk;
}

TEST_F(WholeInput, Backends_AreToldTheirThreads) {
  backend_.plan = PlanAsTold;
  ASSERT_EQ(Status::kOk, Plan());
  EXPECT_EQ(2u, told[0]);
  EXPECT_EQ(2u, told[1]);
}

TEST_F(WholeInput, WhatABackendRefuses_IsItsWord) {
  Backend fallback = DescribedCpu();
  fallback.plan = RefuseToPlan;
  plan_.fallback = &fallback;
  EXPECT_EQ(Status::kUnsupported, Plan());
  EXPECT_STREQ("the backend of the test refuses", diag_.text());
  plan_.fallback = nullptr;
  backend_.plan = RefuseToPlan;
  EXPECT_EQ(Status::kUnsupported, Plan());
  EXPECT_STREQ("the backend of the test refuses", diag_.text());
  plan_.program.max_rows = UINT32_MAX;
  std::vector<Value> values(kMaxValues + 1);
  plan_.program.values = {values.data(), values.size()};
  EXPECT_EQ(Status::kInternal, Plan());
}

TEST_F(WholeInput, SomeRunOnTheHostOnly) {
  EXPECT_EQ(Status::kOk, CheckRunsOnHost(&backend_, "embedders", &diag_));
  EXPECT_EQ(Status::kUnsupported, CheckRunsOnHost(nullptr, "embedders", &diag_));
  EXPECT_STREQ("embedders run on the CPU, not on the missing backend", diag_.text());
  backend_ = DescribedDevice();
  EXPECT_EQ(Status::kUnsupported, CheckRunsOnHost(&backend_, "towers", &diag_));
  EXPECT_STREQ("towers run on the CPU, not on the device backend", diag_.text());
}

TEST_F(WholeInput, Threads_HaveABound) {
  uint32_t n = 0;
  EXPECT_EQ(Status::kOk, ResolveThreads(&n, &diag_));
  EXPECT_EQ(PerformanceCpuCount(), n);
  for (const uint32_t some : {1u, 256u}) {
    n = some;
    EXPECT_EQ(Status::kOk, ResolveThreads(&n, &diag_));
    EXPECT_EQ(some, n);
  }
  n = 257;
  EXPECT_EQ(Status::kBadArgument, ResolveThreads(&n, &diag_));
  EXPECT_STREQ("n_threads is 257, expected 1 to 256", diag_.text());
}

}  // namespace
}  // namespace arn::test
