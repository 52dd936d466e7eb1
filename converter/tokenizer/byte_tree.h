// Builds the trees of the tokens' bytes (runtime/bundle/token_tables.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

class TokenTexts;

// Returns a segment: header, nodes, ids. Omits tokens of more than kMaxByteDepth bytes. Empty if
// the tree exceeds the format's numbers of nodes or ids.
std::vector<uint8_t> BuildByteTree(std::vector<std::pair<std::string, uint32_t>> tokens);

// Returns the segment byte_places of such a tree.
std::vector<uint8_t> BuildBytePlaces(const std::vector<uint8_t>& tree, uint32_t n_tokens);

// Sets byte_tree and start_byte_tree. Leaves both empty if what a token appends depends on more
// than whether it is the first; else sets byte_places too. REQUIRES: decoders, normalizers and
// added tokens are read.
void BuildByteTrees(const TokenTexts& texts, TokenizerTables* tables);

}  // namespace arn::convert
