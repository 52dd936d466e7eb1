// The backends, instruction sets and thread counts that the tests cover.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/contract/backend.h"
#include "platform/base/dtype.h"
#ifdef ARENITE_VULKAN
#include "kernels/vulkan/backend_vulkan.h"

namespace arn::vulkan {

inline const char* NameOf(Restriction restriction) {
  switch (restriction) {
    case Restriction::kNone: return "All";
    case Restriction::kSharedMemory: return "SharedMemory";
    case Restriction::kStaged: return "Staged";
    case Restriction::kTeams: return "Teams";
    case Restriction::kCopied: return "Copied";
    case Restriction::kRanges: return "Ranges";
  }
  return "";
}
inline void PrintTo(Restriction restriction, std::ostream* out) { *out << NameOf(restriction); }

}  // namespace arn::vulkan
#endif

namespace arn::conformance {

struct BackendCase {
  const Backend* backend;
  int64_t simd_target;  // a Highway target; 0: the best
  uint32_t n_threads;
  std::string name;
};
inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }
// Returns the reference backend, the CPU backend for each instruction set of this machine and with
// 3 threads, and, if built, the Vulkan backend with all and with fewer device features.
std::vector<BackendCase> AllBackends();
// Returns those of AllBackends() that keep activations on the host.
std::vector<BackendCase> HostBackends();
// Returns AllBackends() and the Vulkan backend with attention of many rows in large tiles. "Vulkan"
// has small ones, "VulkanSharedMemory" none.
std::vector<BackendCase> AttentionBackends();
// Returns the Vulkan backend with attention of many rows by cooperative matrices, if its shader was
// built: "VulkanMatrices". Pages of f32, and devices without matrices, have tiles.
std::vector<BackendCase> MatrixBackends();
// Returns AllBackends() and the Vulkan backend without host-visible device memory, which changes
// how weights are uploaded (pages: kernels_vulkan_test).
std::vector<BackendCase> BackendsAndStaging();

// Returns the CPU backend that reads matrices of order kDeviceRows in place, and BackendCases of it
// for each instruction set of this machine. Without a Vulkan backend it repacks them.
const Backend* CpuInRows();
std::vector<BackendCase> CpusInRows();

// Returns the weight types of kWeightTypes that the backend runs. It must refuse the others by name
// (Linear_TypesThatTheBackendLacks_AreRefusedByName).
std::vector<DType> WeightTypesOf(const BackendCase& backend);

// Returns the reason why the Vulkan backend cannot run here; null if it can or for another backend.
const char* NoDevice(const Backend* backend);

// Parameterised over the backends. Forces the instruction set while a test object exists and skips
// a backend without a device.
class BackendTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;
  void TearDown() override;
};

}  // namespace arn::conformance
