// Added tokens: matched in the text before normalisation or before splitting, whatever surrounds
// them. Follows Hugging Face tokenizers' AddedVocabulary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/normalize.h"

namespace arn {

// Part of a text: an added token, or the text between two.
struct TextPart {
  size_t begin = 0;
  size_t end = 0;
  bool is_token = false;
  uint32_t id = 0;
};

class AddedTokens {
 public:
  // Normalises the texts of tokens with the flag `normalized`. `units_are_bytes`: the decoder is
  // ByteLevel, which maps their texts through its alphabet.
  Status Init(const fbs::Tokenizer& table, const NormalizerChain& normalizer, bool units_are_bytes,
              Arena* arena, Diag* diag);
  static uint64_t ArenaBytes(const fbs::Tokenizer& table);

  // True if decoding with skip_special omits the token. As in Hugging Face tokenizers, false for a
  // token whose text changes under normalisation.
  bool IsSpecial(uint32_t id) const { return (special_bits_[id / 8] >> (id % 8) & 1) != 0; }

  // Set of tokens that match either the given text or the normalised text.
  struct Entry {
    StringView text;
    uint32_t id;
    uint32_t order;  // index in the bundle; of equal texts the first wins
    bool special;
    bool lstrip;
    bool rstrip;
    bool single_word;
  };
  struct Set {
    Span<Entry> entries;             // sorted by text, then by order
    uint32_t first_entry[257] = {};  // first entry per leading byte; [256] is the count
  };
  // Returns the text that the token decodes to if it differs from the vocabulary's (normalised
  // text); false otherwise.
  bool FindDecoded(uint32_t id, StringView* text) const;
  uint32_t max_decoded_bytes() const { return max_decoded_bytes_; }

  const Set& raw() const { return raw_; }
  const Set& normalized() const { return normalized_; }

 private:
  struct Decoded {
    uint32_t id;
    StringView text;
  };
  struct Workspace;
  Status ReadEntry(const fbs::Tokenizer& table, uint32_t index, Entry* entry, bool* is_normalized,
                   Diag* diag);
  static Status Normalize(const NormalizerChain& normalizer, Workspace* workspace, Arena* texts,
                          Entry* entry, Diag* diag);
  Status AddDecoded(const Entry& entry, bool units_are_bytes, Arena* texts);

  Set raw_;
  Set normalized_;
  Span<Decoded> decoded_;  // sorted by id; allocated for more
  size_t n_decoded_ = 0;
  uint32_t max_decoded_bytes_ = 0;
  uint8_t* special_bits_ = nullptr;
};

// Iterates over the parts of a text in order. Takes the longest token at each position; matches do
// not overlap.
class PartIterator {
 public:
  // `plain`: spans in which special tokens are ordinary text, ordered and disjoint, relative to the
  // full text. This part begins at `text_offset` of it.
  PartIterator(const AddedTokens::Set& set, StringView text, Span<const TextSpan> plain,
               size_t text_offset)
      : set_(set), text_(text), plain_(plain), text_offset_(text_offset) {}
  bool Next(TextPart* part);

 private:
  // Returns the longest token at a position, ignoring special tokens that overlap a plain span.
  // *skip: size of a longer token that lies entirely in a plain span, else 0. It is ordinary text
  // to its end, as in Hugging Face tokenizers (encode_special_tokens).
  const AddedTokens::Entry* Match(size_t position, size_t* skip);
  bool IsWordAround(size_t begin, size_t end) const;

  const AddedTokens::Set& set_;
  StringView text_;
  Span<const TextSpan> plain_;
  size_t text_offset_;
  size_t next_plain_ = 0;  // first span that ends after the matching position
  size_t search_ = 0;      // next matching position
  size_t done_ = 0;        // end of the last part
  TextPart waiting_;       // token after the text just returned
  bool has_waiting_ = false;
};

}  // namespace arn
