// Backends whose device fails on demand (vulkan_faults.h).
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/split_backend.h"
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

// "vulkan+cpu" with shared KV pages, or with copied pages if kCopies.
template <bool kCopies>
Status LoadFaultySplit(const Program& program, const BackendOptions& options,
                       const BackendPlan& plan, const Memory& memory, void** state, Diag* diag) {
  BackendOptions changed = options;
  changed.copies_kv = kCopies;
  const Status status = SplitBackend()->load(program, changed, plan, memory, state, diag);
  if (status == Status::kOk) {
    InstallFaults(SplitDeviceOf(*state));
    // A software driver has host-cached memory.
    const bool is_software =
        std::strstr(SplitBackend()->device_name(*state), "llvmpipe") != nullptr;
    if (kCopies || is_software) {
      EXPECT_NE(kCopies, SplitSharesKv(*state));
    }
  }
  return status;
}

template <bool kCopies>
const Backend* FaultySplitBackend() {
  static const Backend backend = [] {
    Backend b = *SplitBackend();
    b.load = LoadFaultySplit<kCopies>;
    return b;
  }();
  return &backend;
}

}  // namespace arn::test
