// Layers with a mixer other than attention.
#pragma once

#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Returns the mixer of each of n_layers layers, by the family's rule.
std::vector<MixerSpec> LayerMixers(const Family& family, ConfigReader* config, uint32_t n_layers,
                                   uint32_t hidden);

// Clears the attention fields of a layer type and sets the mixer.
LayerKindSpec WithMixer(LayerKindSpec kind, const MixerSpec& mixer);

}  // namespace arn::convert
