// What differs between the layers of a config: which positions they see, which of them rotate,
// which have experts.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/family.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// Window of each layer, 0 for full attention. Throws ConvertError when layer_types and the family's
// rule contradict each other.
std::vector<uint32_t> LayerWindows(const Family& family, ConfigReader* config,
                                   const nlohmann::json& json, uint32_t n_layers);

// Chunk of each layer, 0 for none. Throws ConvertError when layer_types names something else.
std::vector<uint32_t> LayerChunks(const Family& family, ConfigReader* config,
                                  const nlohmann::json& json, uint32_t n_layers);

// Whether each layer's feed-forward part is experts.
std::vector<bool> LayersWithExperts(const Family& family, ConfigReader* config, uint32_t n_layers);

// Whether each layer has rotary positions.
std::vector<bool> LayersWithRope(const Family& family, ConfigReader* config, uint32_t n_layers);

}  // namespace arn::convert
