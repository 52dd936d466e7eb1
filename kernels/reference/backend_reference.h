// The reference backend: every op in scalar code, one thread. It is the oracle that other backends
// are held against, and runs wherever a compiler does.
#pragma once

#include "kernels/backend.h"
#include "kernels/logits_ops.h"

namespace arn {

const Backend* ReferenceBackend();
const LogitsOps* ReferenceLogitsOps();

}  // namespace arn
