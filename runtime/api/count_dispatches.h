// Counts the dispatches of a program for a callback of C.
#pragma once

#include "arenite/profile.h"
#include "kernels/contract/backend.h"
#include "kernels/contract/cost.h"
#include "platform/base/diag.h"

namespace arn::api {

// Returns kUnsupported: the library has no counts (kHasCounts).
Status RefuseCounts(Diag* diag);

// has_half: matmuls may multiply in f16, if the GPU can. kUnsupported: the backend has no counts;
// kBadArgument: traits that no GPU has. REQUIRES: kHasCounts.
Status CountDispatches(const Backend& backend, const Program& program, const arn_gpu_traits* gpu,
                       bool has_half, const CountedRun& run, arn_dispatch_callback callback,
                       void* user, Diag* diag);

}  // namespace arn::api
