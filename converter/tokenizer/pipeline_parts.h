// Helpers shared by the steps around the model.
#pragma once

#include <string>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Translates the pattern to the runtime's syntax; the node fails if there is no equivalent.
std::string Translated(const JsonNode& node, const std::string& pattern);

// Reads {"String": s} or {"Regex": r}.
struct Pattern {
  std::string text;
  bool is_regex;
};
Pattern ReadPattern(const JsonNode& node);

// Reads a text of one character.
std::string ReadCharacter(const JsonNode& node);

// Reads prepend_scheme, or add_prefix_space of older files.
fbs::PrependScheme ReadPrependScheme(const JsonNode& metaspace);

}  // namespace arn::convert
