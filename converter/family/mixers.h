// Layers with a mixer other than attention.
#pragma once

#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Returns the mixer's fields of each of n_layers layers, by the family's rule. The other fields
// have their defaults.
std::vector<LayerKindSpec> LayerMixers(const Family& family, ConfigReader* config,
                                       uint32_t n_layers, uint32_t hidden);

// Replaces the attention fields of a layer type by those of the mixer, if that is another.
LayerKindSpec WithMixer(LayerKindSpec kind, const LayerKindSpec& mixer);

}  // namespace arn::convert
