// Which layers mix their tokens by something else than attention, and how.
#pragma once

#include <vector>

#include "converter/decoder_spec.h"
#include "converter/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// The mixer of each of n_layers layers, by the family's rule.
std::vector<MixerSpec> LayerMixers(const Family& family, ConfigReader* config, uint32_t n_layers,
                                   uint32_t hidden);

// What a layer's kind says about attention is taken away: it has the mixer instead.
LayerKindSpec WithMixer(LayerKindSpec kind, const MixerSpec& mixer);

}  // namespace arn::convert
