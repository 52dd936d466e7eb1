// What to do with the keys of a config.json that no rule of the family asked for.
#pragma once

#include <string>
#include <vector>

#include "converter/hf/config_reader.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

// Keys that are known not to change the computation pass. A key that is known to change it is
// refused unless its value switches it off. A key that is not known passes silently when it is
// null, false, 0 or empty, and is named in `warnings` otherwise.
void CheckUnreadConfigKeys(ConfigReader* config, const nlohmann::json& json,
                           const char* architecture, std::vector<std::string>* warnings);

// The keys with a value that says something and that no supported family reads: for the message
// about an unknown architecture.
std::vector<std::string> KeysThatNobodyKnows(const nlohmann::json& json);

}  // namespace arn::convert
