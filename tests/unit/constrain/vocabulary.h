// A vocabulary for tests of masks.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "converter/tokenizer/byte_tree.h"
#include "runtime/constrain/token_bytes.h"

namespace arn::test {

// A vocabulary with its tree and the places of its punctuation.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
    std::vector<std::pair<std::string, uint32_t>> numbered;
    for (uint32_t id = 0; id < tokens_.size(); ++id) numbered.emplace_back(tokens_[id], id);
    tree_ = convert::BuildByteTree(numbered);
    places_ = convert::BuildBytePlaces(tree_, static_cast<uint32_t>(tokens_.size()));
    all_.assign((tokens_.size() + 31) / 32, 0);
    for (uint32_t id = 0; id < tokens_.size(); ++id) all_[id / 32] |= 1u << (id % 32);
  }
  const std::vector<std::string>& tokens() const { return tokens_; }
  ByteTree tree() const {
    ByteTreeHeader header = {0, 0};
    std::memcpy(&header, tree_.data(), sizeof header);
    const auto* nodes = reinterpret_cast<const ByteNode*>(tree_.data() + sizeof header);
    return {{nodes, header.n_nodes},
            {reinterpret_cast<const uint32_t*>(nodes + header.n_nodes + 1), header.n_ids}};
  }
  BytePlaces places() const {
    const auto* words = reinterpret_cast<const uint32_t*>(places_.data());
    const uint32_t n = words[kPlaceLists];
    const uint32_t* const nodes = words + kPlaceLists + 1;
    const auto* counts = reinterpret_cast<const uint8_t*>(nodes + n);
    return {{words, kPlaceLists + 1}, {nodes, n}, {counts, n}, {counts + n, tokens_.size()}};
  }
  Span<const uint32_t> all() const { return {all_.data(), all_.size()}; }

 private:
  std::vector<std::string> tokens_;
  std::vector<uint8_t> tree_, places_;
  std::vector<uint32_t> all_;
};

}  // namespace arn::test
