// Settings of a config that differ per layer: visible positions, RoPE and experts.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/family/family.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Returns the window of each layer, 0 for full attention. Throws ConvertError if layer_types
// contradicts the family's rule.
std::vector<uint32_t> LayerWindows(const Family& family, ConfigReader* config,
                                   const nlohmann::json& json, uint32_t n_layers);

// Returns the chunk of each layer, 0 for none. Throws ConvertError if layer_types has another name.
std::vector<uint32_t> LayerChunks(const Family& family, ConfigReader* config,
                                  const nlohmann::json& json, uint32_t n_layers);

// True for each layer with an expert (MoE) feed-forward block.
std::vector<bool> LayersWithExperts(const Family& family, ConfigReader* config, uint32_t n_layers);

// True for each layer with RoPE. windows: of the layers.
std::vector<bool> LayersWithRope(const Family& family, ConfigReader* config,
                                 const std::vector<uint32_t>& windows);

}  // namespace arn::convert
