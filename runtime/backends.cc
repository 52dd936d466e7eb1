#include "runtime/backends.h"

#include "kernels/cpu/backend_cpu.h"
#ifndef ARENITE_NO_REFERENCE
#include "kernels/reference/backend_reference.h"
#endif
#ifdef ARENITE_VULKAN
#include "kernels/split/split_backend.h"
#include "kernels/vulkan/backend_vulkan.h"
#endif

namespace arn {
namespace {

#ifdef ARENITE_VULKAN
struct VulkanAndCpu {
  static constexpr const char* kName = "vulkan+cpu";
  static SplitOptions Options() { return {VulkanBackend(), CpuBackend()}; }
};
const Backend* Vulkan() { return VulkanBackend(); }
const Backend* Split() { return &kSplitBackend<VulkanAndCpu>; }
#else
const Backend* Vulkan() { return nullptr; }
const Backend* Split() { return nullptr; }
#endif
const Backend* None() { return nullptr; }
#ifdef ARENITE_NO_REFERENCE
constexpr auto kReference = None;
constexpr auto kReferenceLogitsOps = CpuLogitsOps;  // of no session
#else
constexpr auto kReference = ReferenceBackend;
constexpr auto kReferenceLogitsOps = ReferenceLogitsOps;
#endif

// One row a number of the C API.
struct Row {
  BackendId id;
  const Backend* (*backend)();
  const Backend* (*fallback)();
  const Backend* (*of_inputs)();
  const char* if_missing;
  bool hardware_only;
  const LogitsOps* (*logits_ops)();  // a device's logits are sampled on the CPU
};
constexpr const char* kNoVulkan = "Vulkan: this library was built without it";
constexpr const char* kNoReference = "the reference backend: this library was built without it";
constexpr Row kRows[] = {
    {BackendId::kCpu, CpuBackend, None, CpuBackend, "", false, CpuLogitsOps},
    {BackendId::kReference, kReference, None, kReference, kNoReference, false, kReferenceLogitsOps},
    {BackendId::kVulkan, Vulkan, None, Vulkan, kNoVulkan, false, CpuLogitsOps},
    {BackendId::kAuto, Vulkan, CpuBackend, Vulkan, kNoVulkan, true, CpuLogitsOps},
    {BackendId::kVulkanCpu, Split, CpuBackend, Vulkan, kNoVulkan, false, CpuLogitsOps},
};

// A caller of IdOf() asks for a backend in use: kVulkan's row comes before kAuto's. A backend of no
// row is a test's.
const Row& RowOf(const Backend& backend) {
  for (const Row& row : kRows) {
    if (row.backend() == &backend) return row;
  }
  return kRows[0];
}

}  // namespace

BackendTraits FindTraits(BackendId id) {
  for (const Row& row : kRows) {
    if (row.id == id)
      return {row.backend(), row.fallback(), row.of_inputs(), row.if_missing, row.hardware_only};
  }
  return {};
}

const Backend* FindBackend(BackendId id) { return FindTraits(id).backend; }

BackendId IdOf(const Backend& backend) { return RowOf(backend).id; }

const Backend* SelfTestBackend() { return CpuBackend(); }

const LogitsOps* FindLogitsOps(const Backend& backend) { return RowOf(backend).logits_ops(); }

}  // namespace arn
