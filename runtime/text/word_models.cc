#include "runtime/text/word_models.h"

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn {
namespace {

uint32_t UnkId(const fbs::Tokenizer& table) {
  return table.unk_id() < 0 ? kEmptySlot : static_cast<uint32_t>(table.unk_id());
}

Status PutUnknown(uint32_t unk_id, IdSink* out) {
  if (unk_id == kEmptySlot) return Status::kBadArgument;
  out->Put(unk_id);
  return Status::kOk;
}

}  // namespace

void WordPieceModel::Init(const fbs::Tokenizer& table, bool units_are_bytes, const Vocab* vocab,
                          const TokenTrie* trie) {
  vocab_ = vocab;
  trie_ = trie;
  units_are_bytes_ = units_are_bytes;
  max_word_chars_ = table.max_word_chars();
  unk_id_ = UnkId(table);
  prefix_node_ = TokenTrie::kRoot;
  if (table.subword_prefix() == nullptr) return;
  for (const char c : table.subword_prefix()->string_view()) {
    prefix_node_ = trie->Child(prefix_node_, static_cast<uint8_t>(c));
    if (prefix_node_ == kEmptySlot) return;  // no token begins with it
  }
}

bool WordPieceModel::IsTooLong(StringView piece) const {
  if (piece.size <= max_word_chars_) return false;
  if (units_are_bytes_) return true;
  size_t chars = 0;
  for (size_t i = 0; i < piece.size; ++i) {
    chars += (static_cast<uint8_t>(piece.data[i]) & 0xC0) != 0x80 ? 1 : 0;
  }
  return chars > max_word_chars_;
}

Status WordPieceModel::Encode(StringView piece, Span<uint32_t> ids, IdSink* out) const {
  if (IsTooLong(piece)) return PutUnknown(unk_id_, out);
  if (piece.size > ids.size()) return Status::kInternal;
  const size_t max_token_bytes = vocab_->max_token_bytes();
  size_t count = 0;
  for (size_t begin = 0; begin < piece.size;) {
    uint32_t node = begin == 0 ? TokenTrie::kRoot : prefix_node_;
    uint32_t longest = kEmptySlot;
    size_t longest_end = begin;
    const size_t limit = Min(piece.size, begin + max_token_bytes);
    for (size_t i = begin; node != kEmptySlot && i < limit; ++i) {
      node = trie_->Child(node, static_cast<uint8_t>(piece.data[i]));
      if (node == kEmptySlot || trie_->Id(node) == kEmptySlot) continue;
      longest = trie_->Id(node);
      longest_end = i + 1;
    }
    if (longest == kEmptySlot) return PutUnknown(unk_id_, out);
    ids[count++] = longest;
    begin = longest_end;
  }
  for (size_t i = 0; i < count; ++i) out->Put(ids[i]);
  return Status::kOk;
}

void WordLevelModel::Init(const fbs::Tokenizer& table, const Vocab* vocab) {
  vocab_ = vocab;
  unk_id_ = UnkId(table);
}

Status WordLevelModel::Encode(StringView piece, IdSink* out) const {
  const uint32_t slot = piece.size <= vocab_->max_token_bytes() ? vocab_->Find(piece) : kEmptySlot;
  if (slot == kEmptySlot) return PutUnknown(unk_id_, out);
  out->Put(slot & ~kWholeToken);
  return Status::kOk;
}

}  // namespace arn
