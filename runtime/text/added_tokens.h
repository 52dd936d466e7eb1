// Added tokens: texts that are cut out before normalization or before splitting, whatever is around
// them. The rules are those of Hugging Face tokenizers' AddedVocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/normalize.h"

namespace arn {

// A part of a text: an added token, or text between them.
struct TextPart {
  size_t begin = 0;
  size_t end = 0;
  bool is_token = false;
  uint32_t id = 0;
};

class AddedTokens {
 public:
  // Tokens with the flag `normalized` have their texts normalized here.
  Status Init(const fbs::Tokenizer& table, const NormalizerChain& normalizer, Arena* arena,
              Diag* diag);
  static uint64_t ArenaBytes(const fbs::Tokenizer& table);

  bool IsSpecial(uint32_t id) const { return (special_bits_[id / 8] >> (id % 8) & 1) != 0; }

  // One of the two sets: that of the tokens that match the text as it was given, or that of those
  // that match normalized text.
  struct Entry {
    StringView text;
    uint32_t id;
    uint32_t order;  // in the bundle: of equal texts the first one counts
    bool lstrip;
    bool rstrip;
    bool single_word;
  };
  struct Set {
    Span<Entry> entries;             // sorted by text, then by order
    uint32_t first_entry[257] = {};  // of the texts that begin with a byte; [256] is the count
  };
  const Set& raw() const { return raw_; }
  const Set& normalized() const { return normalized_; }

 private:
  struct Workspace;
  Status ReadEntry(const fbs::Tokenizer& table, uint32_t index, Entry* entry, bool* is_normalized,
                   Diag* diag);
  static Status Normalize(const NormalizerChain& normalizer, Workspace* workspace, Arena* texts,
                          Entry* entry, Diag* diag);

  Set raw_;
  Set normalized_;
  uint8_t* special_bits_ = nullptr;
};

// The parts of a text, in order. At every place the longest token counts; matches do not overlap.
class PartIterator {
 public:
  PartIterator(const AddedTokens::Set& set, StringView text) : set_(set), text_(text) {}
  bool Next(TextPart* part);

 private:
  const AddedTokens::Entry* Match(size_t position) const;
  bool IsWordAround(size_t begin, size_t end) const;

  const AddedTokens::Set& set_;
  StringView text_;
  size_t search_ = 0;  // where matching goes on
  size_t done_ = 0;    // where the last part ended
  TextPart waiting_;   // the token behind the text that was returned
  bool has_waiting_ = false;
};

}  // namespace arn
