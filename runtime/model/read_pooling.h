// Reads what a model makes of texts besides text.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that ReadPooling uses. `pooling` may be null.
uint64_t PoolingSpecBytes(const fbs::Pooling* pooling);

// Reads spec->pooling and spec->token_types. kUnsupported: layers that cannot see a whole text at
// once. REQUIRES: all else is read.
Status ReadPooling(const fbs::Model& model, Arena* arena, ModelSpec* spec, Diag* diag);

}  // namespace arn
