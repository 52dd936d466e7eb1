// Known driver bugs: a table (quirks.cc) matched by the ids a device reports. Unknown bugs are
// found by the test at load (runtime/session/self_test.cc).
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/vk_api.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Device features that can be avoided.
enum Avoid : uint32_t {
  kAvoidSubgroups = 1,       // use shared memory for reductions
  kAvoidDot = 2,             // no integer dot products
  kAvoidMapping = 4,         // use staging buffers even if memory is unified
  kAvoidDevice = 8,          // do not use the device
  kAvoidCoop = 16,           // no cooperative matrices
  kAvoidFullSubgroups = 32,  // let the driver choose subgroup size and fullness
};

struct Quirk {
  uint32_t vendor = 0;                         // vendorID
  uint32_t first_device = 0, last_device = 0;  // deviceID
  uint32_t first_driver = 0, last_driver = 0;  // driverVersion, in the vendor's encoding
  uint32_t avoid = 0;                          // Avoid flags
  const char* why = "";
};

Span<const Quirk> KnownQuirks();

// Returns the combined Avoid flags of the table's entries for this device. *why receives the reason
// of an entry with kAvoidDevice; otherwise it is unchanged.
uint32_t AvoidedOn(Span<const Quirk> table, const VkPhysicalDeviceProperties& device,
                   const char** why);

}  // namespace arn::vulkan
