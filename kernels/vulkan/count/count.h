// Implements CostOps.
#pragma once

#include "kernels/contract/cost.h"

namespace arn::vulkan {

// Counts with the kernels that the lowering chooses for the device, tuning aside.
Status CountRun(const Program& program, const GpuTraits& gpu, const CountedRun& run,
                void (*visit)(void* user, const DispatchCost& cost), void* user, Diag* diag);

}  // namespace arn::vulkan
