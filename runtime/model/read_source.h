// The source part of a model: what a sequence attends to beside its own tokens.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Arena bytes that ReadSource takes at most; `source` may be null.
uint64_t SourceSpecBytes(const fbs::Source* source);

// Reads spec->source; the decoder's kinds are there, its layers are not. Adds the group of the keys
// and values that its layers have of the source.
Status ReadSource(const fbs::Source& source, Arena* arena, ModelSpec* spec, Diag* diag);

}  // namespace arn
