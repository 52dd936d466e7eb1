// Known bugs of drivers: a table (quirks.cc) matched by what a device reports. Unknown bugs are
// found by the test at load (runtime/session/self_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/device/device_report.h"
#include "platform/base/span.h"

namespace arn::vulkan {

struct Quirk {
  uint32_t vendor = 0;           // vendorID; 0: any
  uint32_t driver = 0;           // VkDriverId; 0: any
  const char* device = nullptr;  // part of the device's name; null: any
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;  // OTHER: any
  // driverVersion, in the driver's encoding.
  uint32_t first_version = 0, last_version = UINT32_MAX;
  uint32_t avoid = 0;  // Avoid flags
  const char* why = "";
  const char* source = "";  // public: a project's issue, pull request or file
};

Span<const Quirk> KnownQuirks();

// True if the row is about this device. A device that reports no driver id (Vulkan 1.1 without
// VK_KHR_driver_properties) has its vendor's driver, whichever a row of that vendor names.
bool Matches(const Quirk& quirk, const DeviceReport& device);

// Returns the combined Avoid flags of the table's rows for this device. *why receives the reason
// of a row with kAvoidDevice; otherwise it is unchanged.
uint32_t AvoidedOn(Span<const Quirk> table, const DeviceReport& device, const char** why);

// Writes a sentence for people about each row for this device; "" if there is none.
void DescribeQuirks(Span<const Quirk> table, const DeviceReport& device, char* out, size_t bytes);

}  // namespace arn::vulkan
