// Converts a GGUF file's metadata of RoPE into the keys of config.json.
#pragma once

#include "converter/family/family.h"
#include "converter/gguf/gguf_config.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// `head_dim`: of a head, or the rotated part of latent attention.
void AddRopeConfig(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                   uint32_t head_dim, ConfigReader* metadata, nlohmann::json* config);

}  // namespace arn::convert
