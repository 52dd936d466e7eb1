// The backends of this build, by number. backends.cc is the one file that names concrete ones.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/logits_ops.h"

namespace arn {

// The numbers of the C API (ARN_BACKEND_...). Append only.
enum class BackendId : uint32_t {
  kCpu = 0,
  kReference = 1,
  kVulkan = 2,
  kAuto = 3,  // no backend of its own: Vulkan with the CPU in reserve, or the CPU
  kVulkanCpu = 4,
};

// Null when there is none of that number in this build.
const Backend* FindBackend(BackendId id);
// What samplers use beside a backend.
const LogitsOps* FindLogitsOps(BackendId id);

}  // namespace arn
