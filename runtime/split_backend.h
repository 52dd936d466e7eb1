// Backend "vulkan+cpu": prompts run on the GPU, which multiplies faster; single tokens run on the
// CPU, which often reads memory as fast and has less latency. If the host can map the device's
// pages, both use the same pages. Otherwise each has its own copy, and a page is copied when one
// side needs it and the other has changed it.
#pragma once

#include "kernels/contract/backend.h"

namespace arn {

// REQUIRES: a build with the Vulkan backend. The caller plans and loads the CPU backend first and
// passes its state to load() as BackendOptions::cpu_state.
const Backend* SplitBackend();

// For tests: the device's state, and whether both sides use the same pages.
void* SplitDeviceOf(void* state);
bool SplitSharesKv(const void* state);

}  // namespace arn
