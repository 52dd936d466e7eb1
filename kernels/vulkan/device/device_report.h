// Reads what a driver reports about a device, and chooses the features that the backend uses there.
// Tests make up reports.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/vk_api.h"

namespace arn::vulkan {

// Device features that can be avoided.
enum Avoid : uint32_t {
  kAvoidSubgroups = 1,       // use shared memory for reductions
  kAvoidDot = 2,             // no integer dot products
  kAvoidMapping = 4,         // use staging buffers even if memory is unified
  kAvoidDevice = 8,          // do not use the device
  kAvoidCoop = 16,           // no cooperative matrices
  kAvoidFullSubgroups = 32,  // let the driver choose subgroup size and fullness
  kAvoidLongRuns = 64,       // short chunks of a prompt, unless the caller chooses
  kAvoidImport = 128,        // weights are copied
  kAvoidHalf = 256,          // no f16 arithmetic
};

struct DeviceReport {
  VkPhysicalDeviceProperties properties = {};
  uint32_t driver = 0;  // VkDriverId; 0: not reported
  uint32_t subgroup_size = 0;
  bool has_subgroups = false;        // arithmetic in compute shaders
  bool has_full_subgroups = false;   // pipelines may require them,
  bool has_sized_subgroups = false;  // and those of subgroup_size
  bool has_dot = false;
  uint64_t import_align = 0;  // of host memory that a storage buffer can have; 0: it cannot
  bool has_half = false;      // f16 arithmetic
  bool has_coop = false;      // int8 cooperative matrices may exist; which shapes is asked later,
                              // because the question crashes some drivers
};

// Asks the driver.
DeviceReport ReportOf(const Api& api, VkPhysicalDevice device);

struct DeviceUse {
  bool subgroups = false;
  bool full_subgroups = false, sized_subgroups = false;
  bool dot = false;
  bool half = false;
  bool coop = false;
  bool unified = false;       // memory of the device is mapped
  uint64_t import_align = 0;  // of weights that stay in the file's pages; 0: they are copied
  uint32_t chunk_rows = 0;    // as in DeviceOps
};

// avoid: Avoid flags.
DeviceUse UseOf(const DeviceReport& report, uint32_t avoid);

}  // namespace arn::vulkan
