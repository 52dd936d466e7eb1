#include "runtime/constrain/certain_text.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Returns the child of `parent` that the byte leads to, or n_nodes. parent n_nodes: the top.
uint32_t Child(const ByteTree& tree, uint32_t parent, uint8_t byte) {
  const auto n_nodes = static_cast<uint32_t>(tree.nodes.size());
  uint32_t i = parent == n_nodes ? 0 : parent + 1;
  const uint32_t end = parent == n_nodes ? n_nodes : parent + tree.nodes[parent].size();
  while (i < end && tree.nodes[i].byte() != byte) i += tree.nodes[i].size();
  return i < end ? i : n_nodes;
}

}  // namespace

size_t CertainBytes(const ByteTree& first, const ByteTree& later, Span<const uint8_t> text) {
  size_t certain = 0;  // the last border that no token seen so far crosses
  size_t reaches = 0;  // how far the tokens that begin before it reach
  for (size_t begin = 0; begin < text.size(); ++begin) {
    // All tokens that begin before `begin` end there at the latest.
    if (reaches <= begin) certain = begin;
    const ByteTree& tree = begin == 0 ? first : later;
    const auto top = static_cast<uint32_t>(tree.nodes.size());
    uint32_t node = top;
    for (size_t i = begin; i < text.size(); ++i) {
      node = Child(tree, node, text[i]);
      if (node == top) break;
      if (!tree.Ids(node).empty()) reaches = Max(reaches, i + 1);
      // A longer token could join the text with what follows.
      if (i + 1 == text.size() && tree.nodes[node].size() > 1) return certain;
    }
  }
  return text.size();
}

}  // namespace arn
