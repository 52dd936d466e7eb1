// GPUs for bench --count: their limits, from public sources, and what decides which kernels they
// run.
#pragma once

#include <arenite/profile.h>

#include <string>
#include <vector>

namespace arn::tool {

struct DeviceProfile {
  const char* name;
  const char* source;         // of the figures
  double memory_gb_s;         // 1e9 bytes
  double cache_mb;            // 1e6 bytes; the last cache before memory
  double dot_tops;            // int8 dot products: 1e12 operations a second, two per multiplication
  double matrix_tops;         // int8 cooperative matrices; 0: none
  double float_tflops;        // f32
  double half_tflops;         // f16
  double half_matrix_tflops;  // f16 cooperative matrices with f32 sums; 0: none
  double dispatch_us;         // one that waits for the dispatch before it: barrier, start and end
  arn_gpu_traits traits;
};

const std::vector<DeviceProfile>& DeviceProfiles();
std::vector<std::string> DeviceProfileNames();

}  // namespace arn::tool
