// Lowers a ModelSpec's vision tower to the Program that makes rows of the decoder's width of the
// patches of tiles. All its steps are encoder steps. A row of features is a patch's pixels, then
// its position embedding; the patches of a tile are a sequence, those that are merged next to each
// other. Sizes stay zero until the memory plan sets them.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/arena.h"
#include "platform/base/result.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that BuildVisionProgram uses; 0 without a tower.
uint64_t VisionProgramBytes(const fbs::Model& model);

// Allocates steps, values and kinds from `arena`; weights and ropes belong to the spec. The first
// values are [rows / merged patches, hidden of the decoder]: the rows in the places of tokens, then
// those of each DeepstackSpec. REQUIRES: spec.vision.exists().
Status BuildVisionProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag);

}  // namespace arn
