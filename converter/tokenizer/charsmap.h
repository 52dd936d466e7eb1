// Checks SentencePiece's compiled replacement tables (format: runtime/text/charsmap.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/tokenizer/json_node.h"

namespace arn::convert {

// Decodes the node's base64 text. Throws TokenizerError.
std::vector<uint8_t> CharsmapBytes(const JsonNode& node);

// Returns the factor by which the table can grow a text: n bytes become at most n * growth. The
// node fails if the bytes are not such a table.
uint32_t CharsmapGrowth(const JsonNode& node, const std::vector<uint8_t>& bytes);

}  // namespace arn::convert
