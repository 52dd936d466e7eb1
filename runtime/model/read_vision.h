// Reads the vision tower of a model.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that ReadVision uses. `vision` may be null.
uint64_t VisionSpecBytes(const fbs::Vision* vision);

// Reads spec->vision. REQUIRES: all but the pooling is read.
Status ReadVision(const fbs::Vision& vision, Arena* arena, ModelSpec* spec, Diag* diag);

}  // namespace arn
