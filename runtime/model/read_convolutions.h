// Reads the convolutions that make an encoder's rows of features.
#pragma once

#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/bundle/bundle.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Returns how many there are; 0: the encoder takes tokens.
uint64_t ConvolutionCount(const fbs::Encoder* encoder);
// Sets the features and the convolutions of `out`, whose hidden size is set.
Status ReadConvolutions(const fbs::Encoder& encoder, Arena* arena, const ModelSpec& spec,
                        EncoderSpec* out, Diag* diag);

}  // namespace arn
