// Reference backend: every op in scalar code on one thread. It is the oracle for the tests of the
// other backends, and runs on any CPU.
#pragma once

#include "kernels/contract/backend.h"
#include "kernels/contract/logits_ops.h"

namespace arn {

const Backend* ReferenceBackend();
const LogitsOps* ReferenceLogitsOps();

}  // namespace arn
