// JSON files, with errors that say where.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "nlohmann/json.hpp"

namespace arn::convert {

// The whole file. Throws ConvertError with the system's reason.
std::string ReadTextFile(const std::filesystem::path& path);

// Throws ConvertError "LABEL:LINE:COLUMN: ..." for what is not JSON and for a key that comes twice
// in one object (which of the two would count is anybody's guess).
nlohmann::json ParseJson(const std::string& text, const std::string& label);

nlohmann::json LoadJson(const std::filesystem::path& path);

// A value as it may be shown in an error: JSON, cut at 80 characters.
std::string Shown(const nlohmann::json& value);

}  // namespace arn::convert
