// Vocabulary and merges: views of a bundle's segments in the formats of
// runtime/bundle/token_tables.h. Init checks everything that lookups rely on, so lookups in a
// hostile file stay in bounds and terminate. They also terminate, with any result, if the file is
// overwritten while mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/token_tables.h"

namespace arn {

namespace fbs {
struct Tokenizer;
}

class Vocab {
 public:
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Diag* diag);

  uint32_t n_tokens() const { return n_tokens_; }
  uint32_t max_token_bytes() const { return max_token_bytes_; }
  // REQUIRES: id < n_tokens().
  StringView Text(uint32_t id) const {
    return {bytes_ + offsets_[id], offsets_[id + 1] - offsets_[id]};
  }
  // Returns the id, possibly with kWholeToken, or kEmptySlot.
  uint32_t Find(StringView text) const {
    const uint64_t hash = HashToken(text.data, text.size);
    const uint32_t tag = static_cast<uint32_t>(hash >> 32);
    uint32_t i = static_cast<uint32_t>(hash) & mask_;
    for (uint32_t left = longest_run_; left > 0; --left, i = (i + 1) & mask_) {
      const TokenSlot slot = slots_[i];
      if (slot.id == kEmptySlot) return kEmptySlot;
      if (slot.tag != tag) continue;
      const StringView found = Text(slot.id & ~kWholeToken);
      if (found.size == text.size && std::memcmp(found.data, text.data, text.size) == 0) {
        return slot.id;
      }
    }
    return kEmptySlot;
  }
  // Returns the id of "<0x00>" ... "<0xFF>", or kEmptySlot.
  uint32_t FindByte(uint8_t byte) const {
    constexpr char kHex[] = "0123456789ABCDEF";
    const char name[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
    const uint32_t slot = Find({name, sizeof name});
    return slot == kEmptySlot ? slot : slot & ~kWholeToken;
  }

 private:
  const char* bytes_ = nullptr;
  const uint32_t* offsets_ = nullptr;
  const TokenSlot* slots_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t longest_run_ = 0;  // of used slots: bounds the probes of a lookup
  uint32_t n_tokens_ = 0;
  uint32_t max_token_bytes_ = 0;
};

struct Merge {
  uint32_t rank;
  uint32_t id;  // kEmptySlot: the pair does not merge
};
inline constexpr uint32_t kNoRank = 0xFFFFFFFFu;

class MergeTable {
 public:
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Diag* diag);

  // Returns {kNoRank, kEmptySlot} if the merge does not exist.
  Merge Find(uint32_t left, uint32_t right) const {
    uint32_t i = static_cast<uint32_t>(HashPair(left, right)) & mask_;
    for (uint32_t n = longest_run_; n > 0; --n, i = (i + 1) & mask_) {
      const MergeSlot& slot = slots_[i];
      if (slot.left == left && slot.right == right) return {slot.rank, slot.id};
      if (slot.left == kEmptySlot) break;
    }
    return {kNoRank, kEmptySlot};
  }
  // True if a merge may cross a border between the units (see token_tables.h).
  bool MayCross(uint32_t last_unit, uint32_t first_unit) const {
    const uint32_t bit = BoundaryBit(last_unit, first_unit);
    return (boundary_[bit / 8] >> (bit % 8) & 1) != 0;
  }

 private:
  const uint8_t* boundary_ = nullptr;
  const MergeSlot* slots_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t longest_run_ = 0;
};

}  // namespace arn
