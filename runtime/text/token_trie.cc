#include "runtime/text/token_trie.h"
#include "platform/base/result.h"

#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/segments.h"

namespace arn {

Status TokenTrie::Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Diag* diag) {
  constexpr size_t kBlock = 256;
  Span<const std::byte> bytes;
  ARN_TRY(SegmentBytes(table.trie(), segments, "trie", &bytes, diag));
  const size_t count = bytes.size() / sizeof(TrieUnit);
  if (count == 0 || bytes.size() % (kBlock * sizeof(TrieUnit)) != 0 || count >= kEmptySlot) {
    return diag->Fail(Status::kBadBundle, "tokenizer.trie has %zu bytes, expected blocks of %zu",
                      bytes.size(), kBlock * sizeof(TrieUnit));
  }
  units_ = reinterpret_cast<const TrieUnit*>(bytes.data());
  for (size_t i = 0; i < count; ++i) {
    // XOR with a byte changes only the lowest eight bits, so a child stays within the base's block.
    const bool bad_id = units_[i].id != kEmptySlot && units_[i].id >= table.n_tokens();
    if (units_[i].base >= count || bad_id) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.trie: unit %zu has base %u of %zu units and token %u of %u", i,
                        units_[i].base, count, units_[i].id, table.n_tokens());
    }
  }
  return Status::kOk;
}

}  // namespace arn
