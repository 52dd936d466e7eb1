// What the steps around the model have in common.
#pragma once

#include <string>

#include "converter/tokenizer/json_node.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// The pattern as the runtime matches it; the node fails when there is no such.
std::string Translated(const JsonNode& node, const std::string& pattern);

// {"String": s} or {"Regex": r}.
struct Pattern {
  std::string text;
  bool is_regex;
};
Pattern ReadPattern(const JsonNode& node);

// A text of one character.
std::string ReadCharacter(const JsonNode& node);

// prepend_scheme, or add_prefix_space of older files.
fbs::PrependScheme ReadPrependScheme(const JsonNode& metaspace);

}  // namespace arn::convert
