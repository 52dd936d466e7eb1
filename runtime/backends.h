// Backends of this build by number. Only backends.cc names concrete backends.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/logits_ops.h"

namespace arn {

// Same numbers as in the C API (ARN_BACKEND_...). Append only.
enum class BackendId : uint32_t {
  kCpu = 0,
  kReference = 1,
  kVulkan = 2,
  kAuto = 3,  // not a backend itself: Vulkan with the CPU as fallback, or the CPU
  kVulkanCpu = 4,
};

// Returns null if this build has no such backend.
const Backend* FindBackend(BackendId id);
// Returns the vector operations that samplers use with a backend.
const LogitsOps* FindLogitsOps(BackendId id);

}  // namespace arn
