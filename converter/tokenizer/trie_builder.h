// The trie of runtime/bundle/token_tables.h from texts.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/bundle/token_tables.h"

namespace arn::convert {

// `tokens`: different texts, none empty, and their ids, in any order. The same tokens always give
// the same units.
std::vector<TrieUnit> BuildTrie(std::vector<std::pair<std::string_view, uint32_t>> tokens);

}  // namespace arn::convert
