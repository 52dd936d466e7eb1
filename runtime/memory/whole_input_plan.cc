#include "runtime/memory/whole_input_plan.h"

#include "platform/base/arith.h"
#include "platform/os/thread_pool.h"
#include "platform/os/topology.h"
#include "runtime/memory/activation_plan.h"

namespace arn {
namespace {

constexpr Region kWholeInputOrder[] = {Region::kConstants, Region::kIo, Region::kActivations};

}  // namespace

BackendOptions OptionsOfThreads(uint32_t n_threads) {
  BackendOptions options;
  options.cpu.n_threads = options.cpu.n_prefill_threads = n_threads;
  return options;
}

uint64_t WholeInputPlan::BlockBytes(Region region) const {
  const bool is_on_device =
      region == Region::kActivations && backend->host_kv == nullptr && fallback == nullptr;
  return is_on_device ? 0 : region_bytes[static_cast<uint32_t>(region)];
}

uint64_t WholeInputPlan::TotalBytes() const {
  uint64_t total = 0;
  for (const Region region : kWholeInputOrder) total += BlockBytes(region);
  return total;
}

void WholeInputPlan::Copy(const Program& of_model) {
  program = of_model;
  for (size_t i = 0; i < program.values.size(); ++i) values[i] = program.values[i];
  for (size_t i = 0; i < program.ropes.size(); ++i) ropes[i] = program.ropes[i];
  program.max_rows = 1;
  Bind();
}

void WholeInputPlan::Bind() {
  program.values = {values, program.values.size()};
  program.ropes = {ropes, program.ropes.size()};
}

Status CheckRunsOnHost(const Backend* backend, const char* who, Diag* diag) {
  if (backend != nullptr && backend->host_kv != nullptr) return Status::kOk;
  return diag->Fail(Status::kUnsupported, "%s run on the CPU, not on the %s backend", who,
                    backend == nullptr ? "missing" : backend->name);
}

Status ResolveThreads(uint32_t* n_threads, Diag* diag) {
  if (*n_threads == 0) *n_threads = Min(Max(ReadTopology().performance.count(), 1u), kMaxThreads);
  if (*n_threads <= kMaxThreads) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "n_threads is %u, expected 1 to %u", *n_threads,
                    kMaxThreads);
}

Status PlanProgram(uint32_t n_threads, Layout* layout, WholeInputPlan* plan, Diag* diag) {
  ARN_TRY(PlanActivations(plan->program, layout));
  const BackendOptions options = OptionsOfThreads(n_threads);
  ARN_TRY(plan->backend->plan(plan->program, options, layout, &plan->backend_plan, diag));
  if (plan->fallback != nullptr) {
    ARN_TRY(plan->fallback->plan(plan->program, options, layout, &plan->fallback_plan, diag));
  }
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    plan->region_bytes[r] = layout->RegionBytes(static_cast<Region>(r));
  }
  return Status::kOk;
}

Memory PartitionBlock(const WholeInputPlan& plan, std::byte* block) {
  Memory memory;
  uint64_t offset = 0;
  for (const Region region : kWholeInputOrder) {
    const uint64_t bytes = plan.BlockBytes(region);
    memory.region[static_cast<uint32_t>(region)] = {block + offset, static_cast<size_t>(bytes)};
    offset += bytes;
  }
  return memory;
}

Status LoadProgram(const WholeInputPlan& plan, uint32_t n_threads, const Memory& memory,
                   void** state, Diag* diag) {
  return plan.backend->load(plan.program, OptionsOfThreads(n_threads), plan.backend_plan, memory,
                            state, diag);
}

}  // namespace arn
