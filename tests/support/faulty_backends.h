// Backends whose device fails on demand (vulkan_faults.h).
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cpu/backend_cpu.h"
#include "kernels/split/split_backend.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {

// Uses staging buffers, so that page reads and writes are submissions too.
inline Status LoadFaulty(const Program& program, const BackendOptions& options,
                         const BackendPlan& plan, const Memory& memory, void** state, Diag* diag) {
  const Backend* backend = vulkan::RestrictedBackend(vulkan::Restriction::kStaged);
  const Status status = backend->load(program, options, plan, memory, state, diag);
  if (status == Status::kOk) InstallFaults(*state);
  return status;
}

inline const Backend* FaultyBackend() {
  static const Backend backend = [] {
    Backend b = *vulkan::RestrictedBackend(vulkan::Restriction::kStaged);
    b.load = LoadFaulty;
    return b;
  }();
  return &backend;
}

inline Status LoadFaultyDevice(const Program& program, const BackendOptions& options,
                               const BackendPlan& plan, const Memory& memory, void** state,
                               Diag* diag) {
  const Status status = VulkanBackend()->load(program, options, plan, memory, state, diag);
  if (status == Status::kOk) InstallFaults(*state);
  return status;
}

// "vulkan+cpu" with shared KV pages, or with copied pages if kCopies.
template <bool kCopies>
struct FaultyParts {
  static constexpr const char* kName = "vulkan+cpu";
  static SplitOptions Options() {
    static const Backend device = [] {
      Backend b = *VulkanBackend();
      b.load = LoadFaultyDevice;
      return b;
    }();
    return {&device, CpuBackend(), kCopies};
  }
};

template <bool kCopies>
Status JoinFaultySplit(void* state, void* fallback, Diag* diag) {
  const Status status = split::kPartner.join(state, fallback, diag);
  // A software driver has host-cached memory.
  const bool is_software = std::strstr(split::kDevice.name(state), "llvmpipe") != nullptr;
  if (kCopies || is_software) {
    EXPECT_NE(kCopies, SplitSharesKv(state));
  }
  return status;
}

template <bool kCopies>
const Backend* FaultySplitBackend() {
  static constexpr PartnerOps kPartner = {JoinFaultySplit<kCopies>};
  static const Backend backend = [] {
    Backend b = kSplitBackend<FaultyParts<kCopies>>;
    b.partner = &kPartner;
    return b;
  }();
  return &backend;
}

}  // namespace arn::test
