// Builds the trie of runtime/bundle/token_tables.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/bundle/token_tables.h"

namespace arn::convert {

// `tokens`: distinct, non-empty texts and their ids, in any order. The order does not change the
// result.
std::vector<TrieUnit> BuildTrie(std::vector<std::pair<std::string_view, uint32_t>> tokens);

}  // namespace arn::convert
