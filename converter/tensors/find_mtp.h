// Finds the multi-token prediction head of a checkpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/hf/checkpoint.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Returns its layers; null if the checkpoint has none, or one that is left out: a warning says why.
std::shared_ptr<const DecoderSpec> FindMtp(const nlohmann::json& config, const std::string& label,
                                           const DecoderSpec& spec, const Checkpoint& checkpoint,
                                           std::vector<std::string>* warnings);

}  // namespace arn::convert
