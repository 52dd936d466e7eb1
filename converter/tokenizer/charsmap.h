// SentencePiece's compiled tables of replacements (runtime/text/charsmap.h has the format).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/tokenizer/json_node.h"

namespace arn::convert {

// The bytes of the node's text in base64. Throws TokenizerError.
std::vector<uint8_t> CharsmapBytes(const JsonNode& node);

// n bytes of text become at most n * growth by the table. The node fails when the bytes are no such
// table.
uint32_t CharsmapGrowth(const JsonNode& node, const std::vector<uint8_t>& bytes);

}  // namespace arn::convert
