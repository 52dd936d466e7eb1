// "vulkan+cpu": prompts are computed on the GPU, which multiplies faster, and tokens one by one on
// the CPU, which often reads as fast and answers sooner. Both have all pages; one goes from the one
// to the other when it is needed there and was changed here.
#pragma once

#include "kernels/backend.h"

namespace arn {

// Of a build with the Vulkan backend. Region::kKv and Region::kActivations have to lie in memory
// too.
const Backend* SplitBackend();

}  // namespace arn
