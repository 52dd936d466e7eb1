// Multi-head latent attention: sizes and scale of its heads.
#pragma once

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Fills the latent's fields, the heads and the scale. *rotates_neighbours: RoPE pairs are
// neighbours. REQUIRES: family.latent.
void ReadLatent(const Family& family, ConfigReader* config, const nlohmann::json& json,
                LayerKindSpec* kind, bool* rotates_neighbours);

}  // namespace arn::convert
