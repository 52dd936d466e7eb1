// Reads JSON files; errors give the position.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "converter/tokenizer/shown_json.h"  // IWYU pragma: export
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Returns the whole file. Throws ConvertError with the system's reason.
std::string ReadTextFile(const std::filesystem::path& path);

// File contents, read once because the file may be a pipe.
struct NamedText {
  std::string file;
  std::string text;
};
NamedText ReadNamedText(const std::filesystem::path& path);

// Throws ConvertError "LABEL:LINE:COLUMN: ..." for invalid JSON and for a duplicate key in an
// object (which one counts is undefined), and "LABEL: ..." for a number out of a double's range.
nlohmann::json ParseJson(const std::string& text, const std::string& label);

nlohmann::json LoadJson(const std::filesystem::path& path);

}  // namespace arn::convert
