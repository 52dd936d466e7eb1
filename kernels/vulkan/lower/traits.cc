#include "kernels/vulkan/lower/traits.h"

#include "platform/base/arith.h"

namespace arn::vulkan {

GpuTraits GpuTraitsOf(const Device& device) {
  const VkPhysicalDeviceLimits& limits = device.properties().limits;
  GpuTraits gpu;
  gpu.subgroup_size = device.subgroup_size();
  gpu.has_full_subgroups = device.has_full_subgroups();
  gpu.has_dot = device.uses_dot();
  gpu.has_half = device.uses_half();
  gpu.is_unified = device.is_unified();
  gpu.max_lanes = Min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  gpu.shared_memory = limits.maxComputeSharedMemorySize;
  gpu.coop_m = device.coop().m;
  gpu.coop_n = device.coop().n;
  gpu.coop_k = device.coop().k;
  gpu.half_coop_m = device.half_coop().m;
  gpu.half_coop_n = device.half_coop().n;
  gpu.half_coop_k = device.half_coop().k;
  return gpu;
}

void SetTraits(const GpuTraits& gpu, Traits* traits) {
  traits->matmuls.subgroup_size = gpu.subgroup_size;
  traits->matmuls.has_full_subgroups = gpu.has_full_subgroups;
  traits->matmuls.max_lanes = gpu.max_lanes;
  traits->matmuls.shared_memory = gpu.shared_memory;
  traits->matmuls.has_dot = gpu.has_dot;
  traits->matmuls.has_half = gpu.has_half;
  traits->matmuls.coop = {gpu.coop_m, gpu.coop_n, gpu.coop_k};
  traits->matrices.coop = {gpu.half_coop_m, gpu.half_coop_n, gpu.half_coop_k};
  traits->matrices.subgroup_size = gpu.has_full_subgroups ? gpu.subgroup_size : 0;
  traits->matrices.max_lanes = gpu.max_lanes;
  // Software drivers have small subgroups and run them one after another.
  const bool is_wide = gpu.subgroup_size >= 32 && gpu.max_lanes >= 256;
  traits->choice_width = is_wide ? 256 : 128;
  traits->matmuls.int8_gemv_steps = is_wide ? 2 : 1;
  traits->row_width = !is_wide ? 64 : gpu.max_lanes >= 1024 ? 512 : 256;
  // A norm of 2,048 columns or more takes a subgroup longer than a dispatch of its own would.
  if (gpu.subgroup_size >= 16) {
    traits->most_teams = Min(traits->row_width, gpu.max_lanes) / gpu.subgroup_size;
  }
  // Measured on a large device: where its caches hold a layer's keys and values, tiles leave too
  // few workgroups to hide the latency of memory. Where they do not, each row reads them again.
  if (!gpu.is_unified) traits->row_attention_bytes = uint64_t{16} << 20;
  // Leaves room for a second workgroup where the limit is all that a core has.
  traits->shared_memory = Max(Device::kMinSharedMemory, gpu.shared_memory / 4 * 3);
}

}  // namespace arn::vulkan
