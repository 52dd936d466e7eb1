// Builds the steps of layers with a recurrent state.
#pragma once

#include "runtime/model/layer_values.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

// Adds a convolution of [b | c | x], a scan over the convolved x of [z | x], gated by z, or linear
// attention of the convolved [q | k | v], gated by z. Reads `in`; returns the input of the output
// projection.
ValueId AddMixer(const LayerSpec& layer, const LayerKindSpec& kind, uint32_t layer_index,
                 ValueId in, const MixerValues& v, StepList* steps);

}  // namespace arn
