// Trie of the token texts: view of a bundle's segment (runtime/bundle/token_tables.h).
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

class TokenTrie {
 public:
  static constexpr uint32_t kRoot = 0;

  // Checks all bounds that walking relies on.
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Diag* diag);

  // Returns the unit that the byte leads to, or kEmptySlot.
  uint32_t Child(uint32_t unit, uint8_t byte) const {
    const uint32_t child = units_[unit].base ^ byte;
    return units_[child].check == unit ? child : kEmptySlot;
  }
  // Returns the token that ends at the unit, or kEmptySlot.
  uint32_t Id(uint32_t unit) const { return units_[unit].id; }

 private:
  const TrieUnit* units_ = nullptr;
};

}  // namespace arn
