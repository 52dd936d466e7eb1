// Shows JSON values in error messages.
#pragma once

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Returns the value as JSON, cut at 80 characters; bytes that are not UTF-8 become U+FFFD.
std::string Shown(const nlohmann::json& value);

}  // namespace arn::convert
