#include "converter/tokenizer/charsmap.h"

#include <algorithm>
#include <cstring>

#include "converter/tokenizer/base64.h"
#include "converter/tokenizer/utf8_text.h"

namespace arn::convert {
namespace {

constexpr uint32_t kMaxGrowth = 64;  // the runtime's limit

uint32_t Label(uint32_t unit) { return unit & (0x80000000u | 0xFF); }
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

// Visits all replacements of the table by walking its trie.
class Walk {
 public:
  Walk(const JsonNode& node, std::vector<uint32_t> units, const uint8_t* texts, size_t text_bytes)
      : node_(node), units_(std::move(units)), texts_(texts), text_bytes_(text_bytes) {}

  uint32_t Growth() {
    Visit(Offset(units_[0]), 0);
    return growth_;
  }

 private:
  // Visits the children of the unit with base `base`, `depth` bytes from the root.
  void Visit(uint32_t base, uint32_t depth) {
    constexpr uint32_t kMostBytes = 64;
    constexpr size_t kMostVisits = 16;  // the trie shares suffixes, so units are visited repeatedly
    if (depth == kMostBytes || ++visits_ > kMostVisits * units_.size()) {
      node_.Fail("is not a table of strings");
    }
    for (uint32_t byte = 1; byte < 256; ++byte) {
      const uint32_t at = base ^ byte;
      if (at >= units_.size() || Label(units_[at]) != byte) continue;
      const uint32_t below = at ^ Offset(units_[at]);
      if ((units_[at] >> 8 & 1) != 0) {
        if (below >= units_.size()) node_.Fail("is not a table of strings");
        Measure(units_[below] & 0x7FFFFFFFu, depth + 1);
      }
      Visit(below, depth + 1);
    }
  }

  void Measure(uint32_t at, uint32_t bytes) {
    if (at >= text_bytes_) node_.Fail("has a replacement past its end");
    const uint8_t* const end = std::find(texts_ + at, texts_ + text_bytes_, 0);
    const size_t size = static_cast<size_t>(end - (texts_ + at));
    growth_ = std::max(growth_, static_cast<uint32_t>((size + bytes - 1) / bytes));
    if (growth_ > kMaxGrowth) node_.Fail("has a replacement that is too long");
  }

  const JsonNode& node_;
  const std::vector<uint32_t> units_;
  const uint8_t* texts_;
  const size_t text_bytes_;
  size_t visits_ = 0;
  uint32_t growth_ = 1;
};

}  // namespace

std::vector<uint8_t> CharsmapBytes(const JsonNode& node) {
  std::vector<uint8_t> bytes;
  if (!DecodeBase64(node.String(), &bytes)) node.Fail("is not base64");
  return bytes;
}

uint32_t CharsmapGrowth(const JsonNode& node, const std::vector<uint8_t>& bytes) {
  uint32_t tree_bytes = 0;
  if (bytes.size() >= sizeof tree_bytes) std::memcpy(&tree_bytes, bytes.data(), sizeof tree_bytes);
  if (tree_bytes == 0 || tree_bytes % sizeof(uint32_t) != 0 ||
      tree_bytes > bytes.size() - sizeof tree_bytes) {
    node.Fail("is not a compiled table");
  }
  std::vector<uint32_t> units(tree_bytes / sizeof(uint32_t));
  std::memcpy(units.data(), bytes.data() + sizeof tree_bytes, tree_bytes);
  const uint8_t* const texts = bytes.data() + sizeof tree_bytes + tree_bytes;
  const size_t text_bytes = bytes.size() - sizeof tree_bytes - tree_bytes;
  if (!IsUtf8Text(texts, text_bytes)) node.Fail("has replacements that are not UTF-8");
  return Walk(node, std::move(units), texts, text_bytes).Growth();
}

}  // namespace arn::convert
