// The CPU backend. Everything is chosen at load: XNNPACK's micro-kernels for the matrix products,
// Highway's best instruction set for the rest. Results do not depend on the number of threads.
//
// What lies outside the caller's memory: the threads and their pool (made by load, ended by
// unload; none with one thread), and some kilobytes that the first plan() of a process makes
// cpuinfo allocate to describe the CPU, which stay. run() allocates nothing.
#pragma once

#include "kernels/backend.h"
#include "kernels/logits_ops.h"

namespace arn {

const Backend* CpuBackend();
const LogitsOps* CpuLogitsOps();

}  // namespace arn
