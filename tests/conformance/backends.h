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
// The reference; the CPU backend with each instruction set that this machine has, and 3 threads.
std::vector<BackendCase> AllBackends();

// Tests that run for each; the instruction set is forced while one is alive.
class BackendTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;
  void TearDown() override;
};

}  // namespace arn::conformance
