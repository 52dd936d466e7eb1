#include "kernels/vulkan/device/quirks.h"

#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kAmd = 0x1002, kNvidia = 0x10de, kQualcomm = 0x5143, kImagination = 0x1010,
                   kIntel = 0x8086, kBroadcom = 0x14e4;

constexpr uint32_t NvidiaVersion(uint32_t major, uint32_t minor, uint32_t rest = 0) {
  return major << 22 | minor << 14 | rest;
}

constexpr Quirk kQuirks[] = {
    {.vendor = kQualcomm,
     .driver = VK_DRIVER_ID_QUALCOMM_PROPRIETARY,
     .avoid = kAvoidSubgroups,
     .why = "Adreno's compiler fails on subgroup reductions",
     .source = "ggml issue 28635, pull 29165; ncnn issue 6778"},
    {.vendor = kQualcomm,
     .driver = VK_DRIVER_ID_QUALCOMM_PROPRIETARY,
     .avoid = kAvoidCoop,
     .why = "Adreno's compiler gets shaders with cooperative matrices wrong",
     .source = "ncnn pull 6972"},
    {.vendor = kQualcomm,
     .driver = VK_DRIVER_ID_MESA_TURNIP,
     .avoid = kAvoidFullSubgroups,
     .why = "Turnip's compiler crashes on large shaders with full subgroups",
     .source = "ncnn src/gpu.cpp"},
    {.vendor = kImagination,
     .driver = VK_DRIVER_ID_IMAGINATION_PROPRIETARY,
     .device = "C-Series",
     .avoid = kAvoidDevice,
     .why = "its matmuls are wrong, and its firmware restarts",
     .source = "ggml issue 28214"},
    {.vendor = kImagination,
     .driver = VK_DRIVER_ID_IMAGINATION_PROPRIETARY,
     .avoid = kAvoidFullSubgroups,
     .why = "PowerVR's compiler fails on reductions of several outputs within one subgroup",
     .source = "ggml pull 20565"},
    {.vendor = kAmd,
     .driver = VK_DRIVER_ID_AMD_PROPRIETARY,
     .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     .avoid = kAvoidCoop,
     .why = "the query for the shapes of cooperative matrices crashes",
     .source = "AMDVLK issue 422"},
    {.vendor = kAmd,
     .driver = VK_DRIVER_ID_AMD_OPEN_SOURCE,
     .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     .avoid = kAvoidCoop,
     .why = "the query for the shapes of cooperative matrices crashes",
     .source = "ggml pull 22750"},
    {.vendor = kAmd,
     .driver = VK_DRIVER_ID_AMD_PROPRIETARY,
     .device = "Radeon RX 6",
     .avoid = kAvoidCoop,
     .why = "it reports cooperative matrices that the hardware does not have",
     .source = "ggml pull 11074"},
    {.vendor = kAmd,
     .driver = VK_DRIVER_ID_AMD_OPEN_SOURCE,
     .device = "Radeon RX 6",
     .avoid = kAvoidCoop,
     .why = "it reports cooperative matrices that the hardware does not have",
     .source = "ggml pull 11074"},
    {.vendor = kAmd,
     .driver = VK_DRIVER_ID_MOLTENVK,
     .avoid = kAvoidSubgroups,
     .why = "subgroups have 32 invocations where 64 are reported",
     .source = "MoltenVK issue 1553; ggml pull 15886"},
    {.vendor = kIntel,
     .driver = VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS,
     .device = "B70",
     .avoid = kAvoidCoop,
     .why = "cooperative matrices hang the device",
     .source = "IGCIT issue 1487"},
    {.vendor = kNvidia,
     .driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .first_version = NvidiaVersion(595, 58),
     .last_version = NvidiaVersion(595, 59) - 1,
     .avoid = kAvoidCoop,
     .why = "its compiler crashes on cooperative matrices beside subgroup operations",
     .source = "blade issue 333"},
    {.vendor = kBroadcom,
     .driver = VK_DRIVER_ID_MESA_V3DV,
     .avoid = kAvoidLongRuns,
     .why = "the kernel ends a dispatch after 500 ms, and the device may hang",
     .source = "Raspberry Pi's linux issue 6660"},
};

struct Flag {
  uint32_t flag;
  const char* name;
};
constexpr Flag kFlags[] = {
    {kAvoidSubgroups, "no subgroup operations"},
    {kAvoidDot, "no integer dot products"},
    {kAvoidMapping, "no mapped device memory"},
    {kAvoidDevice, "not used"},
    {kAvoidCoop, "no cooperative matrices"},
    {kAvoidFullSubgroups, "no full subgroups"},
    {kAvoidLongRuns, "short runs"},
    {kAvoidImport, "no imported memory"},
};

}  // namespace

Span<const Quirk> KnownQuirks() { return {kQuirks, sizeof kQuirks / sizeof kQuirks[0]}; }

bool Matches(const Quirk& quirk, const DeviceReport& device) {
  const VkPhysicalDeviceProperties& p = device.properties;
  return (quirk.vendor == 0 || quirk.vendor == p.vendorID) &&
         (quirk.driver == 0 || quirk.driver == device.driver ||
          (device.driver == 0 && quirk.vendor != 0)) &&
         (quirk.device == nullptr || std::strstr(p.deviceName, quirk.device) != nullptr) &&
         (quirk.type == VK_PHYSICAL_DEVICE_TYPE_OTHER || quirk.type == p.deviceType) &&
         p.driverVersion >= quirk.first_version && p.driverVersion <= quirk.last_version;
}

uint32_t AvoidedOn(Span<const Quirk> table, const DeviceReport& device, const char** why) {
  uint32_t avoid = 0;
  for (const Quirk& quirk : table) {
    if (!Matches(quirk, device)) continue;
    avoid |= quirk.avoid;
    if ((quirk.avoid & kAvoidDevice) != 0) *why = quirk.why;
  }
  return avoid;
}

void DescribeQuirks(Span<const Quirk> table, const DeviceReport& device, char* out, size_t bytes) {
  size_t at = 0;
  const auto add = [&](const char* before, const char* text) {
    const int n = std::snprintf(out + at, bytes - at, "%s%s", before, text);
    if (n > 0) at = Min(at + static_cast<size_t>(n), bytes - 1);
  };
  out[0] = '\0';
  for (const Quirk& quirk : table) {
    if (!Matches(quirk, device)) continue;
    const char* before = at == 0 ? "" : "; ";
    for (const Flag& flag : kFlags) {
      if ((quirk.avoid & flag.flag) == 0) continue;
      add(before, flag.name);
      before = ", ";
    }
    add(": ", quirk.why);
    add(" (", quirk.source);
    add(")", "");
  }
}

}  // namespace arn::vulkan
