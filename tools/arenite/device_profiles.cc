#include "tools/arenite/device_profiles.h"

namespace arn::tool {
namespace {

constexpr arn_gpu_traits Traits(uint32_t subgroup_size, bool is_unified, uint32_t max_lanes,
                                uint32_t shared_memory, uint32_t coop_m = 0, uint32_t coop_n = 0,
                                uint32_t coop_k = 0, uint32_t half_coop_k = 0) {
  arn_gpu_traits traits = ARN_GPU_TRAITS_INIT;
  traits.subgroup_size = subgroup_size;
  traits.has_full_subgroups = 1;
  traits.has_dot = 1;
  traits.has_half = 1;
  traits.is_unified = is_unified ? 1 : 0;
  traits.max_lanes = max_lanes;
  traits.shared_memory = shared_memory;
  traits.coop_m = coop_m;
  traits.coop_n = coop_n;
  traits.coop_k = coop_k;
  // f16 matrices have the rows and outputs of those of int8.
  traits.half_coop_m = half_coop_k == 0 ? 0 : coop_m;
  traits.half_coop_n = half_coop_k == 0 ? 0 : coop_n;
  traits.half_coop_k = half_coop_k;
  return traits;
}

}  // namespace

// dispatch_us is a measurement of one device (h200), taken for the others too.
const std::vector<DeviceProfile>& DeviceProfiles() {
  static const std::vector<DeviceProfile> profiles = {
      {"adreno830",
       "Snapdragon 8 Elite: LPDDR5X-5300 of 64 bits; 1536 lanes at 1.1 GHz; 8 MB of system cache. "
       "int8 dot products at four times f32 are an assumption; f16 at twice is what vkpeak "
       "measured of an Adreno 643",
       84.8, 8, 13.5, 0, 3.38, 6.76, 0, 7.5, Traits(64, true, 1024, 32 * 1024)},
      {"mali-g310",
       "an Amlogic S905X5M measured by vkpeak (2025-10): copies of 4.15 GB/s, each byte read and "
       "written; f16 at twice f32 is an assumption",
       8.3, 0.25, 0.214, 0, 0.0526, 0.105, 0, 7.5, Traits(16, true, 512, 32 * 1024)},
      {"arc-a770",
       "Intel's specification: 560 GB/s, 16 MB of L2, 4096 lanes at 2.1 GHz, 262 TOPS by XMX. int8 "
       "dot products at four times f32, f16 at twice, and f16 matrices at half of int8, are "
       "assumptions",
       560, 16, 68.8, 262, 17.2, 34.4, 131, 7.5, Traits(16, false, 1024, 64 * 1024, 8, 16, 32, 16)},
      {"rtx4060",
       "NVIDIA's specification: 272 GB/s, 24 MB of L2, 15.11 TFLOPS, 121 dense int8 TOPS, f16 "
       "without matrices as f32. f16 matrices with f32 sums at a quarter of int8 are NVIDIA's "
       "ratio for an RTX 4090. int8 dot products at four times f32 are an assumption",
       272, 24, 60.4, 121, 15.11, 15.11, 30.2, 7.5,
       Traits(32, false, 1024, 48 * 1024, 16, 16, 32, 16)},
      {"h200",
       "NVIDIA's specification: 4.8 TB/s, 50 MB of L2, 67 TFLOPS, f16 without matrices at twice "
       "that, 1979 dense int8 TOPS, f16 matrices at half; the time of a dispatch is that of "
       "docs/vulkan.md, On a GPU",
       4800, 50, 268, 1979, 67, 134, 989, 7.5, Traits(32, false, 1024, 48 * 1024, 16, 16, 32, 16)},
  };
  return profiles;
}

std::vector<std::string> DeviceProfileNames() {
  std::vector<std::string> names;
  for (const DeviceProfile& profile : DeviceProfiles()) names.emplace_back(profile.name);
  return names;
}

}  // namespace arn::tool
