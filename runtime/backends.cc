#include "runtime/backends.h"

#include "kernels/cpu/backend_cpu.h"
#include "kernels/reference/backend_reference.h"
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
  }
  return nullptr;
}

const LogitsOps* FindLogitsOps(BackendId id) {
  switch (id) {
    case BackendId::kCpu: return CpuLogitsOps();
    case BackendId::kReference: return ReferenceLogitsOps();
    case BackendId::kVulkan: return CpuLogitsOps();  // logits come to the host
  }
  return nullptr;
}

}  // namespace arn
