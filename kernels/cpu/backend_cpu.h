// CPU backend. Kernels are chosen at load: XNNPACK's micro-kernels for matmuls, Highway's best
// instruction set for everything else. Results do not depend on the number of threads.
//
// Only the thread pool is outside the caller's memory: load() creates it (unless there is one
// thread) and unload() ends it. run() allocates nothing.
#pragma once

#include "kernels/contract/backend.h"
#include "kernels/contract/logits_ops.h"

namespace arn {

const Backend* CpuBackend();
const LogitsOps* CpuLogitsOps();

}  // namespace arn
