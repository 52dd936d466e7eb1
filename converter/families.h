// Configs to specs, by the rows of converter/family_table.cc: with that table the only place of the
// project that knows families; everything after it reads a DecoderSpec.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/decoder_spec.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// From the contents of config.json to a spec. `label` names the file in errors. What is odd but
// harmless is added to `warnings`, a sentence each. Throws ConvertError for an unknown architecture
// and for every value that would change the computation and is not understood.
DecoderSpec ReadDecoderSpec(const nlohmann::json& config, const std::string& label,
                            std::vector<std::string>* warnings);

// n_heads, n_kv_heads, head_dim, window and mixer of each layer, and nothing else of the config:
// for plans of memory. nullopt when the config is of no family that can be converted. Throws
// ConvertError.
std::optional<std::vector<LayerKindSpec>> ReadLayerHeads(const nlohmann::json& config,
                                                         const std::string& label);

}  // namespace arn::convert
