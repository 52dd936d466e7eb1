// Converts a GGUF file's metadata of experts into the keys of config.json.
#pragma once

#include "converter/family/family.h"
#include "converter/gguf/gguf_config.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// Refuses shared experts that the family does not have. `n_layers`: without those of a multi-token
// prediction head.
void AddExpertConfig(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                     uint32_t n_layers, ConfigReader* metadata, nlohmann::json* config);

}  // namespace arn::convert
