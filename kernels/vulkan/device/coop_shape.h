// Shape of cooperative matrices.
#pragma once

#include <cstdint>

namespace arn::vulkan {

// A matmul by one subgroup: [m, k] int8 times [k, n] int8, accumulated in int32; or f16 times f16,
// accumulated in f32.
struct CoopShape {
  uint32_t m = 0, n = 0, k = 0;  // m = 0: not supported
};
inline constexpr uint32_t kMaxCoop = 16;  // maximum m

}  // namespace arn::vulkan
