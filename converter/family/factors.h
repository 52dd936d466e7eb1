// Factors and caps of a model: of its embedding, its logits, its matrices.
#pragma once

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Reads a cap; 0: none. An absent one means the family's default; null means off.
float ReadSoftcap(const nlohmann::json& json, ConfigReader* config, const char* key,
                  double fallback);

// Reads factors of the whole model, not of a layer.
void ReadFactors(const Family& family, ConfigReader* config, const nlohmann::json& json,
                 DecoderSpec* spec);

}  // namespace arn::convert
