#include "runtime/backends.h"

#include "kernels/cpu/backend_cpu.h"
#include "kernels/reference/backend_reference.h"
#include "runtime/split_backend.h"
#ifdef ARENITE_VULKAN
#include "kernels/vulkan/backend_vulkan.h"
#endif

namespace arn {

const Backend* FindBackend(BackendId id) {
  switch (id) {
    case BackendId::kCpu: return CpuBackend();
    case BackendId::kReference: return ReferenceBackend();
#ifdef ARENITE_VULKAN
    case BackendId::kVulkan: return VulkanBackend();
#else
    case BackendId::kVulkan: return nullptr;
#endif
    case BackendId::kAuto: return nullptr;
    case BackendId::kVulkanCpu:
      return FindBackend(BackendId::kVulkan) == nullptr ? nullptr : SplitBackend();
  }
  return nullptr;
}

const LogitsOps* FindLogitsOps(BackendId id) {
  switch (id) {
    case BackendId::kCpu: return CpuLogitsOps();
    case BackendId::kReference: return ReferenceLogitsOps();
    case BackendId::kVulkan:  // samplers read logits on the host
    case BackendId::kAuto:
    case BackendId::kVulkanCpu: return CpuLogitsOps();
  }
  return nullptr;
}

}  // namespace arn
