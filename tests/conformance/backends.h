// Which backends, instruction sets and thread counts the tests go through.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace arn::conformance {

struct BackendCase {
  const Backend* backend;
  int64_t simd_target;  // one of Highway's; 0: the best
  uint32_t n_threads;
  std::string name;
};
// The reference; the CPU backend with each instruction set that this machine has, and 3 threads;
// the Vulkan backend with all that the device has and with less, when it is built.
std::vector<BackendCase> AllBackends();
// And the Vulkan backend where the host does not see the device's memory, which makes a difference
// to how weights get there (and pages: kernels_vulkan_test).
std::vector<BackendCase> BackendsAndStaging();

// Why the Vulkan backend cannot run here; null when it can, or is none.
const char* NoDevice(const Backend* backend);

// Tests that run for each; the instruction set is forced while one is alive. Those of a backend
// without a device are skipped.
class BackendTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;
  void TearDown() override;
};

}  // namespace arn::conformance
