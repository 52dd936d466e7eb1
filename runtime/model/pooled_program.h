// Lowers a ModelSpec with pooling to the Program that makes vectors or scores of whole texts. All
// its steps are encoder steps: tokens -> layers without a cache -> one row per text. Sizes stay
// zero until the memory plan sets them.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/arena.h"
#include "platform/base/result.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that BuildPooledProgram uses; 0 without pooling.
uint64_t PooledProgramBytes(const fbs::Model& model);

// Allocates steps, values and kinds from `arena`; weights and ropes belong to the spec. REQUIRES:
// spec.pooling.exists().
Status BuildPooledProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag);

}  // namespace arn
