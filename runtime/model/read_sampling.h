// Reads the checkpoint's sampling defaults from the bundle.
#pragma once

#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"
#include "runtime/sampling/sampling_options.h"

namespace arn {

// Lists refer to the bundle. kBadBundle names the option by its number, or the field and the value.
Status ReadSampling(const fbs::Generation& generation, uint32_t vocab, SamplingOptions* out,
                    Diag* diag);

}  // namespace arn
