// "vulkan+cpu": prompts are computed on the GPU, which multiplies faster, and tokens one by one on
// the CPU, which often reads as fast and answers sooner. Where the host sees the device's pages,
// both work on these. Elsewhere each has all of its own; one goes from the one to the other when it
// is needed there and was changed here.
#pragma once

#include "kernels/backend.h"

namespace arn {

// Of a build with the Vulkan backend. The CPU's part is its caller's: planned and loaded before it,
// and given to load() as BackendOptions::cpu_state.
const Backend* SplitBackend();

// For tests: the device's part of a state, and whether both work on the same pages.
void* SplitDeviceOf(void* state);
bool SplitSharesKv(const void* state);

}  // namespace arn
