// Chooses what the lowering takes from a device's properties.
#pragma once

#include "kernels/contract/cost.h"
#include "kernels/vulkan/lower/lower.h"

namespace arn::vulkan {

GpuTraits GpuTraitsOf(const Device& device);

// Sets all of `traits` but the windows, the segments and the choice of matmuls.
void SetTraits(const GpuTraits& gpu, Traits* traits);

}  // namespace arn::vulkan
