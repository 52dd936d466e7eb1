// Reads the encoder of a model.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that ReadEncoder uses. `encoder` may be null.
uint64_t EncoderSpecBytes(const fbs::Encoder* encoder);

// Reads spec->encoder and adds the KV group of its cross-attention. REQUIRES: the decoder's kinds
// are read, its layers are not.
Status ReadEncoder(const fbs::Encoder& encoder, Arena* arena, ModelSpec* spec, Diag* diag);

}  // namespace arn
