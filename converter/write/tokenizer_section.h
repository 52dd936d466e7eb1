// Writes a bundle's tokenizer: tables in segments, the rest in the index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/write/bundle_writer.h"

namespace arn::convert {

// Reads tokenizer.json and related files of `folder`. Returns nullopt if there is no
// tokenizer.json. Throws ConvertError if the tokenizer cannot be represented.
std::optional<TokenizerTables> LoadTokenizer(const std::filesystem::path& folder,
                                             std::vector<std::string>* warnings);

// Appends the tables' segments.
TokenizerSegments WriteTokenizer(const TokenizerTables& tables, BundleWriter* writer);

}  // namespace arn::convert
