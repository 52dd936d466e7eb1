#include "converter/tokenizer/trie_builder.h"

#include <algorithm>

namespace arn::convert {
namespace {

constexpr uint32_t kBlock = 256;
// Searches for free units only in the last blocks, so that building stays linear.
constexpr uint32_t kOpenBlocks = 16;

class Builder {
 public:
  explicit Builder(std::vector<std::pair<std::string_view, uint32_t>> tokens)
      : tokens_(std::move(tokens)) {
    std::sort(tokens_.begin(), tokens_.end());
    AddBlock();
    used_[0] = true;
  }

  std::vector<TrieUnit> Build() {
    std::vector<Range> waiting = {{0, 0, tokens_.size(), 0}};
    while (!waiting.empty()) {
      const Range range = waiting.back();
      waiting.pop_back();
      Expand(range, &waiting);
    }
    return std::move(units_);
  }

 private:
  // Tokens whose first `depth` bytes lead to the unit.
  struct Range {
    uint32_t unit;
    size_t first;
    size_t last;
    size_t depth;
  };

  void AddBlock() {
    units_.resize(units_.size() + kBlock, {0, kEmptySlot, kEmptySlot});
    used_.resize(units_.size());
  }

  void Expand(Range range, std::vector<Range>* waiting) {
    if (tokens_[range.first].first.size() == range.depth) {
      units_[range.unit].id = tokens_[range.first].second;
      ++range.first;
    }
    std::vector<uint8_t> bytes;
    std::vector<size_t> starts;
    for (size_t i = range.first; i < range.last; ++i) {
      const uint8_t byte = static_cast<uint8_t>(tokens_[i].first[range.depth]);
      if (!bytes.empty() && bytes.back() == byte) continue;
      bytes.push_back(byte);
      starts.push_back(i);
    }
    if (bytes.empty()) return;
    starts.push_back(range.last);
    const uint32_t base = FindBase(bytes);
    units_[range.unit].base = base;
    for (size_t i = bytes.size(); i-- > 0;) {
      const uint32_t child = base ^ bytes[i];
      used_[child] = true;
      units_[child].check = range.unit;
      waiting->push_back({child, starts[i], starts[i + 1], range.depth + 1});
    }
  }

  // Returns a base at which the slots of all children are free.
  uint32_t FindBase(const std::vector<uint8_t>& bytes) {
    const uint32_t n_blocks = static_cast<uint32_t>(units_.size()) / kBlock;
    for (uint32_t block = n_blocks > kOpenBlocks ? n_blocks - kOpenBlocks : 0; block < n_blocks;
         ++block) {
      for (uint32_t unit = block * kBlock; unit < (block + 1) * kBlock; ++unit) {
        if (used_[unit]) continue;
        const uint32_t base = unit ^ bytes[0];
        const auto is_free = [&](uint8_t byte) { return !used_[base ^ byte]; };
        if (std::all_of(bytes.begin(), bytes.end(), is_free)) return base;
      }
    }
    AddBlock();
    return n_blocks * kBlock;
  }

  std::vector<std::pair<std::string_view, uint32_t>> tokens_;
  std::vector<TrieUnit> units_;
  std::vector<bool> used_;
};

}  // namespace

std::vector<TrieUnit> BuildTrie(std::vector<std::pair<std::string_view, uint32_t>> tokens) {
  if (tokens.empty()) return std::vector<TrieUnit>(kBlock, {0, kEmptySlot, kEmptySlot});
  return Builder(std::move(tokens)).Build();
}

}  // namespace arn::convert
