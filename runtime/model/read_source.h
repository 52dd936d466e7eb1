// Reads the encoder of a model.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that ReadSource uses. `source` may be null.
uint64_t SourceSpecBytes(const fbs::Source* source);

// Reads spec->source and adds the KV group of its cross-attention. REQUIRES: the decoder's kinds
// are read, its layers are not.
Status ReadSource(const fbs::Source& source, Arena* arena, ModelSpec* spec, Diag* diag);

}  // namespace arn
