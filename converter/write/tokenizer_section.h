// The tokenizer's part of a bundle: tables in segments, the rest in the index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/tokenizer/tokenizer_tables.h"
#include "converter/write/bundle_writer.h"

namespace arn::convert {

// Reads tokenizer.json (and what belongs to it) of `folder`. Nothing when there is no
// tokenizer.json. Throws ConvertError when there is one that cannot be represented.
std::optional<TokenizerTables> LoadTokenizer(const std::filesystem::path& folder,
                                             std::vector<std::string>* warnings);

// Appends the tables' segments.
TokenizerSegments WriteTokenizer(const TokenizerTables& tables, BundleWriter* writer);

}  // namespace arn::convert
