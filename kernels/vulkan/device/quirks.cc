#include "kernels/vulkan/device/quirks.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kAny = UINT32_MAX;
constexpr uint32_t kQualcomm = 0x5143;

constexpr Quirk kQuirks[] = {
    {kQualcomm, 0, kAny, 0, kAny, kAvoidSubgroups,
     "Adreno's compiler crashes on subgroup reductions (ggml issues 28635, 29165)"},
};

}  // namespace

Span<const Quirk> KnownQuirks() { return {kQuirks, sizeof kQuirks / sizeof kQuirks[0]}; }

uint32_t AvoidedOn(Span<const Quirk> table, const VkPhysicalDeviceProperties& device,
                   const char** why) {
  uint32_t avoid = 0;
  for (const Quirk& quirk : table) {
    if (quirk.vendor != device.vendorID || device.deviceID < quirk.first_device ||
        device.deviceID > quirk.last_device || device.driverVersion < quirk.first_driver ||
        device.driverVersion > quirk.last_driver) {
      continue;
    }
    avoid |= quirk.avoid;
    if ((quirk.avoid & kAvoidDevice) != 0) *why = quirk.why;
  }
  return avoid;
}

}  // namespace arn::vulkan
