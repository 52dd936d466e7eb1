// Checkpoints that others have quantised: puts dense tensors in place of the packed ones, by the
// quant_method of config.json's quantization_config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/hf/checkpoint.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

struct QuantisationConfig {
  nlohmann::json keys;
  std::string label;  // names it in errors
};

// Takes quantization_config, or compression_config, out of a config or of the text_config in it.
// Returns nothing if there is none. Throws ConvertError for a method that is not read.
std::optional<QuantisationConfig> TakeQuantisation(nlohmann::json* config,
                                                   const std::string& label);

// Replaces the stored tensors. Throws ConvertError with file, tensor or key, and value; also for a
// key that the method's reader does not know, unless `ignored_keys` has it.
void DecodeQuantised(const QuantisationConfig& config, const std::vector<std::string>& ignored_keys,
                     Checkpoint* checkpoint, std::vector<std::string>* warnings);

}  // namespace arn::convert
