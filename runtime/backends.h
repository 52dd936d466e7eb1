// Backends of this build, and what the rest of the runtime asks about them. Only backends.cc names
// concrete backends.
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

struct BackendTraits {
  const Backend* backend = nullptr;   // null: not in this build
  const Backend* fallback = nullptr;  // takes over if `backend` is missing, rejects the model or
                                      // fails. Null: nothing does
  // Runs programs that see whole inputs, in place of a backend that shares its work by tokens.
  const Backend* of_inputs = nullptr;
  const char* if_missing = "";  // why `backend` is null, unless its number is unknown
  bool hardware_only = false;   // GpuOptions::hardware_only
};

// Returns what a caller gets for a number of the C API; no backend for an unknown one.
BackendTraits FindTraits(BackendId id);
// Returns null if this build has no such backend.
const Backend* FindBackend(BackendId id);
// Returns the id of a backend, which is never kAuto.
BackendId IdOf(const Backend& backend);
// Returns the backend that computes what a device's self-test expects.
const Backend* SelfTestBackend();
// Returns the vector operations that samplers use with a backend.
const LogitsOps* FindLogitsOps(const Backend& backend);

}  // namespace arn
