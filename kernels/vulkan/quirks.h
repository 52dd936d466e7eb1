// What is known to be wrong with drivers: a table (quirks.cc), matched by the numbers that a device
// gives of itself. What is not known shows in the test at load (runtime/session/device_check.cc).
#pragma once

#include <cstdint>

#include "kernels/vulkan/vk_api.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Parts of a device that can be left alone.
enum Avoid : uint32_t {
  kAvoidSubgroups = 1,  // reductions go through shared memory
  kAvoidDot = 2,        // no integer dot products
  kAvoidMapping = 4,    // staging buffers, even where memory is unified
  kAvoidDevice = 8,     // all of it
  kAvoidCoop = 16,      // no cooperative matrices
};

struct Quirk {
  uint32_t vendor = 0;                         // vendorID
  uint32_t first_device = 0, last_device = 0;  // deviceID
  uint32_t first_driver = 0, last_driver = 0;  // driverVersion, as the vendor counts
  uint32_t avoid = 0;                          // Avoid, added up
  const char* why = "";
};

Span<const Quirk> KnownQuirks();

// What the table's entries for this device say to avoid, together; *why: the reason of one of those
// that say kAvoidDevice, else as it was.
uint32_t AvoidedOn(Span<const Quirk> table, const VkPhysicalDeviceProperties& device,
                   const char** why);

}  // namespace arn::vulkan
