#include "runtime/constrain/token_bytes.h"

#include <cstring>

#include "platform/base/result.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/segments.h"

namespace arn {
namespace {

Status Check(const ByteTree& tree, uint32_t n_tokens, const char* name, Diag* diag) {
  const auto n_nodes = static_cast<uint32_t>(tree.nodes.size());
  const ByteNode* const nodes = tree.nodes.data();
  uint32_t depth = 0, first_id = 0;
  for (uint32_t i = 0; i <= n_nodes; ++i) {
    const ByteNode& node = nodes[i];
    bool is_valid = node.first_id() >= first_id && node.first_id() <= tree.ids.size();
    first_id = node.first_id();
    if (i < n_nodes) {
      // A walk that skips the subtree finds a state for the depth at which it goes on.
      const uint32_t after = i + node.size();
      is_valid &= node.depth() <= depth && node.size() != 0 && after <= n_nodes &&
                  (after == n_nodes || nodes[after].depth() <= node.depth());
      depth = node.depth() + 1;
    } else {
      is_valid &= first_id == tree.ids.size();
    }
    if (!is_valid) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.%s: node %u of %u has depth %u, %u nodes and ids from %u of %zu",
                        name, i, n_nodes, node.depth(), node.size(), first_id, tree.ids.size());
    }
  }
  for (size_t i = 0; i < tree.ids.size(); ++i) {
    if (tree.ids[i] >= n_tokens) {
      return diag->Fail(Status::kBadBundle, "tokenizer.%s: id %zu is %u, expected less than %u",
                        name, i, tree.ids[i], n_tokens);
    }
  }
  return Status::kOk;
}

Status Read(const fbs::Segment* segment, Span<const std::byte> segments, uint32_t n_tokens,
            const char* name, bool checks, ByteTree* out, Diag* diag) {
  Span<const std::byte> bytes;
  ARN_TRY(SegmentBytes(segment, segments, name, &bytes, diag));
  ByteTreeHeader header = {0, 0};
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  const uint64_t wanted = sizeof header + (uint64_t{header.n_nodes} + 1) * sizeof(ByteNode) +
                          uint64_t{header.n_ids} * sizeof(uint32_t);
  if (bytes.size() != wanted) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.%s has %zu bytes, which are not %u nodes and %u ids", name,
                      bytes.size(), header.n_nodes, header.n_ids);
  }
  const auto* nodes = reinterpret_cast<const ByteNode*>(bytes.data() + sizeof header);
  out->nodes = {nodes, header.n_nodes};
  out->ids = {reinterpret_cast<const uint32_t*>(nodes + header.n_nodes + 1), header.n_ids};
  return checks ? Check(*out, n_tokens, name, diag) : Status::kOk;
}

Status ReadPlaces(const fbs::Segment* segment, Span<const std::byte> segments, uint32_t n_nodes,
                  uint32_t n_tokens, bool checks, BytePlaces* out, Diag* diag) {
  if (segment == nullptr) return Status::kOk;
  Span<const std::byte> bytes;
  ARN_TRY(SegmentBytes(segment, segments, "byte_places", &bytes, diag));
  const auto* words = reinterpret_cast<const uint32_t*>(bytes.data());
  constexpr uint64_t kHeadWords = kPlaceLists + 1;
  const uint64_t n = bytes.size() < kHeadWords * sizeof(uint32_t) ? 0 : words[kPlaceLists];
  bool is_valid =
      bytes.size() == (kHeadWords + n) * sizeof(uint32_t) + n + n_tokens && words[0] == 0;
  if (is_valid) {
    const auto* counts = reinterpret_cast<const uint8_t*>(words + kHeadWords + n);
    *out = {{words, kHeadWords},
            {words + kHeadWords, static_cast<size_t>(n)},
            {counts, static_cast<size_t>(n)},
            {counts + n, n_tokens}};
    for (uint32_t i = 0; checks && i < kPlaceLists && is_valid; ++i) {
      is_valid = words[i] <= words[i + 1] && words[i + 1] <= out->nodes.size();
      for (uint32_t k = words[i]; is_valid && k < words[i + 1]; ++k) {
        is_valid = out->nodes[k] < n_nodes && (k == words[i] || out->nodes[k - 1] < out->nodes[k]);
      }
    }
  }
  if (is_valid) return Status::kOk;
  return diag->Fail(
      Status::kBadBundle,
      "tokenizer.byte_places has %zu bytes, which are not %u lists of ascending nodes "
      "below %u and counts for them and %u tokens: convert the checkpoint again",
      bytes.size(), kPlaceLists, n_nodes, n_tokens);
}

}  // namespace

Status TokenBytes::Init(const fbs::Tokenizer& table, Span<const std::byte> segments, bool checks,
                        Diag* diag) {
  if (table.byte_tree() == nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "constraints need the tokens' bytes, which this bundle lacks: convert the "
                      "checkpoint again");
  }
  const uint32_t n_tokens = table.n_tokens();
  ARN_TRY(Read(table.byte_tree(), segments, n_tokens, "byte_tree", checks, &tree_, diag));
  ARN_TRY(ReadPlaces(table.byte_places(), segments, static_cast<uint32_t>(tree_.nodes.size()),
                     n_tokens, checks, &places_, diag));
  start_tree_ = tree_;
  if (table.start_byte_tree() == nullptr) return Status::kOk;
  return Read(table.start_byte_tree(), segments, n_tokens, "start_byte_tree", checks, &start_tree_,
              diag);
}

}  // namespace arn
