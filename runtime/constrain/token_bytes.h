// Trees of the tokens' bytes: views of a bundle's segments (runtime/bundle/token_tables.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/token_tables.h"

namespace arn {

namespace fbs {
struct Tokenizer;
}

// To visit the tokens that a state allows: keep the state after each depth. At node i take the
// state at its depth; if its byte is allowed there, store the next state at depth + 1 and go to
// node i + 1, else go to node i + size(). Ids(i) end at node i.
struct ByteTree {
  Span<const ByteNode> nodes;  // without the end node
  Span<const uint32_t> ids;

  // The ids whose bytes end at node i. REQUIRES: i < nodes.size().
  Span<const uint32_t> Ids(uint32_t i) const {
    const ByteNode* node = nodes.data() + i;
    return ids.subspan(node->first_id(), node[1].first_id() - node->first_id());
  }
  // The ids that append nothing.
  Span<const uint32_t> EmptyIds() const { return ids.subspan(0, nodes.data()->first_id()); }
};

// Lists the nodes of a tree by their bytes (byte_places of runtime/bundle/token_tables.h).
struct BytePlaces {
  Span<const uint32_t> first;  // [kPlaceLists + 1]; empty: there is no index
  Span<const uint32_t> nodes;
  Span<const uint8_t> node_characters;   // of `nodes`: characters before it
  Span<const uint8_t> token_characters;  // [n_tokens]: that the token begins

  // Characters before a place of List(). REQUIRES: it is not the end.
  uint32_t Characters(const uint32_t* place) const {
    return node_characters[static_cast<size_t>(place - nodes.begin())];
  }

  Span<const uint32_t> List(uint32_t i) const {
    return nodes.subspan(first[i], first[i + 1] - first[i]);
  }
};

class TokenBytes {
 public:
  // `checks`: checks all that walking the trees relies on: depths that grow by at most 1, subtrees
  // inside their tree, ids below n_tokens. Else a call with the same table has checked it.
  // kUnsupported if the bundle has no trees.
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, bool checks, Diag* diag);

  // Return the bytes that tokens append in the middle of a text, and as its first token.
  const ByteTree& tree() const { return tree_; }
  const ByteTree& start_tree() const { return start_tree_; }
  // Returns the places of tree().
  const BytePlaces& places() const { return places_; }

 private:
  ByteTree tree_;
  ByteTree start_tree_;
  BytePlaces places_;
};

}  // namespace arn
