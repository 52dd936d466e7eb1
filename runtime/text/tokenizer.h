// Tokenizer: text <-> token ids, over tables that lie in the bundle and are used in place. Equal,
// id for id, to Hugging Face tokenizers for the tokenizer.json that it was converted from, or to
// SentencePiece for its model (docs/tokenizers.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/span.h"

namespace arn {

namespace fbs {
struct Tokenizer;  // runtime/bundle/bundle.fbs
}

class Tokenizer {
 public:
  // Checks the tables (untrusted: every offset, id and hash slot that could lead out of bounds) and
  // compiles the regexes. `segments` is the bundle's segment area, whose Segment ranges were
  // already checked to lie inside it. All memory comes from `arena`, which is sized by
  // ArenaBytes(). The result points into `table`, `segments` and `arena`.
  static Result<Tokenizer*> Create(const fbs::Tokenizer& table, Span<const std::byte> segments,
                                   Arena* arena, Diag* diag);
  // Enough arena for Create (an upper bound, from the table's counts).
  static uint64_t ArenaBytes(const fbs::Tokenizer& table);

  // Scratch for Encode of a text of text_bytes: what the worst text of that size takes, of which an
  // ordinary one touches a small part.
  size_t EncodeScratchBytes(size_t text_bytes) const;
  // *n_ids is the whole count even when it exceeds ids.size(); then the status is kBufferTooSmall.
  // `scratch` is 16-byte aligned. Invalid UTF-8 in `text` is replaced by U+FFFD first. Texts of
  // 2^32 symbols are refused. kBadArgument when a part of the text has no token and the tokenizer
  // has none for unknown text. Thread-safe.
  Status Encode(StringView text, bool add_special, Span<std::byte> scratch, Span<int32_t> ids,
                size_t* n_ids, Diag* diag) const;

  uint32_t n_tokens() const;
  bool IsSpecial(int32_t id) const;
  // The token's text as stored, e.g. for display: bytes for byte-level models, "\xE2\x96\x81the"
  // for SentencePiece style.
  StringView TokenText(int32_t id) const;

  // The text of all the ids, byte for byte that of Hugging Face tokenizers (but an added token that
  // matches normalized text gives its own text; tokenizers 0.23 gives the normalized one). *n_bytes
  // is the whole size even when it exceeds out.size(); then the status is kBufferTooSmall and what
  // is in `out` is unspecified. Ids that no token has give nothing. Thread-safe.
  Status Decode(Span<const int32_t> ids, bool skip_special, Span<char> out, size_t* n_bytes) const;

  // Detokenisation as a stream: bytes come out as soon as they are whole characters. One state per
  // sequence. The concatenated pieces are what Decode gives, but for one case: of a run of byte
  // tokens ("<0xE2>") that is not UTF-8 as a whole Decode makes U+FFFD throughout, while the stream
  // has given out the characters before the first wrong byte.
  struct DecodeState {
    bool started = false;       // a token was decoded
    bool bad_run = false;       // inside a run of byte tokens that is not UTF-8
    bool space_waits = false;   // a word ended: a space comes if a token follows
    uint32_t stripped = 0;      // characters that Strip took from the start so far
    uint32_t pending_size = 0;  // bytes of an unfinished UTF-8 character
    uint8_t pending[4] = {0};
  };
  // Bytes that DecodeToken/DecodeFinish may write at most for any token.
  size_t max_piece_bytes() const;
  // Writes the text that token `id` makes final to out, which has max_piece_bytes(); returns its
  // bytes. Only whole, valid UTF-8 is written; invalid bytes become U+FFFD as Hugging Face's
  // decoder has them. `skip_special`: special tokens give nothing.
  size_t DecodeToken(DecodeState* state, int32_t id, bool skip_special, Span<char> out) const;
  // What is left when the sequence ends (an unfinished character becomes U+FFFD).
  size_t DecodeFinish(DecodeState* state, Span<char> out) const;

 private:
  Tokenizer() = default;
  // Whether the id gives any text.
  bool IsDecoded(int32_t id, bool skip_special) const;

  struct Impl;
  const Impl* impl_ = nullptr;
};

}  // namespace arn
