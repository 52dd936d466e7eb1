// Checks keys of a config.json that a family requires, and those that none of its rules reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/family/family.h"
#include "converter/hf/config_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Passes keys that do not change the computation. Passes any other key if its value is null, false,
// 0, empty or the key's off value; otherwise throws ConvertError with the key's name. Also passes
// keys of `ignored` and those that the family ignores, and lists them in `warnings`.
void CheckUnreadConfigKeys(ConfigReader* config, const nlohmann::json& json, const Family& family,
                           const std::vector<std::string>& ignored,
                           std::vector<std::string>* warnings);

// Refuses values that the family does not support, and the absence of keys that it needs. `hidden`:
// the width of the layers.
void CheckRequiredConfigKeys(ConfigReader* config, const Family& family, uint32_t hidden);

// Returns the keys with a meaningful value that no supported family reads, for the error about an
// unknown architecture.
std::vector<std::string> KeysThatNobodyKnows(const nlohmann::json& json);

}  // namespace arn::convert
