// Tokenizer: converts text <-> token ids with tables used in place from the bundle. Produces the
// same ids as Hugging Face tokenizers for the source tokenizer.json, or as SentencePiece for its
// model (docs/tokenizers.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/span.h"

namespace arn {

namespace fbs {
struct Tokenizer;  // runtime/bundle/text.fbs
}

class Tokenizer {
 public:
  // Checks the untrusted tables (every offset, id and hash slot) and compiles the regexes.
  // `segments` is the bundle's segment area, whose Segment ranges are already checked. Takes all
  // memory from `arena` (ArenaBytes()). The result points into `table`, `segments` and `arena`,
  // which must outlive it.
  static Result<Tokenizer*> Create(const fbs::Tokenizer& table, Span<const std::byte> segments,
                                   Arena* arena, Diag* diag);
  // Returns an upper bound of the arena bytes that Create needs.
  static uint64_t ArenaBytes(const fbs::Tokenizer& table);

  struct EncodeOptions {
    bool add_special = false;  // add special tokens around the text (BOS)
    // Treats special tokens in the text as ordinary text: everywhere (is_plain), or in these spans,
    // ordered and disjoint. A special token that overlaps a span is not recognised.
    bool is_plain = false;
    Span<const TextSpan> plain_spans;
    uint64_t max_steps = 0;        // see arn_tokenize_options; 0: DefaultSteps
    int (*stop)(void*) = nullptr;  // see arn_tokenize_options
    void* user = nullptr;
  };

  // Returns the scratch bytes of Encode for the worst text of text_bytes; ordinary texts touch a
  // small part.
  size_t EncodeScratchBytes(size_t text_bytes) const;
  // *n_ids is the full count, even if it exceeds ids.size() (kBufferTooSmall). REQUIRES: `scratch`
  // is 16-byte aligned. Replaces invalid UTF-8 in `text` by U+FFFD first. Refuses texts of 2^32
  // symbols. kBadArgument: a part of the text has no token and there is no unknown token, or
  // plain_spans are out of order or the text is not UTF-8. kUnsupported: max_steps exceeded;
  // kCancelled: stop. Thread-safe.
  Status Encode(StringView text, const EncodeOptions& options, Span<std::byte> scratch,
                Span<int32_t> ids, size_t* n_ids, Diag* diag) const;

  uint32_t n_tokens() const;
  bool IsSpecial(int32_t id) const;
  // Returns the token's stored text for display: bytes for byte-level models, "\xE2\x96\x81the" for
  // SentencePiece.
  StringView TokenText(int32_t id) const;

  // Decodes ids to the same bytes as Hugging Face tokenizers. *n_bytes is the full size, even if it
  // exceeds out.size() (kBufferTooSmall, contents of `out` unspecified). Unknown ids give nothing.
  // Thread-safe.
  Status Decode(Span<const int32_t> ids, bool skip_special, Span<char> out, size_t* n_bytes) const;

  // State of streaming detokenisation, one per sequence. Returns bytes once they form whole
  // characters. The concatenated pieces equal Decode, with one exception: for a run of byte tokens
  // ("<0xE2>") that is not UTF-8, Decode returns U+FFFD throughout, while the stream has already
  // returned the characters before the first wrong byte.
  struct DecodeState {
    bool started = false;       // a token was decoded
    bool bad_run = false;       // in a run of byte tokens that is not UTF-8
    bool space_waits = false;   // a word ended: a space follows if a token does
    uint32_t stripped = 0;      // characters stripped from the start so far
    uint32_t pending_size = 0;  // bytes of an unfinished UTF-8 character
    uint8_t pending[4] = {0};
  };
  // Returns the maximum bytes that DecodeToken or DecodeFinish write for any token.
  size_t max_piece_bytes() const;
  // Writes the text that token `id` completes and returns its bytes. If these exceed the size of
  // `out`, its contents are unspecified and the state is unchanged. Writes only whole, valid UTF-8;
  // invalid bytes become U+FFFD as in Hugging Face's decoder. `skip_special`: special tokens give
  // nothing.
  size_t DecodeToken(DecodeState* state, int32_t id, bool skip_special, Span<char> out) const;
  // Writes the bytes that token `id` appends to a text: in its middle, or as its first token.
  // Between tokens they may cut characters. Returns their number, also if they exceed the size of
  // `out` (contents unspecified). Special tokens and ids without text give none. REQUIRES:
  // HasAppendedBytes().
  size_t AppendedBytes(int32_t id, bool is_first, Span<char> out) const;
  // False if what a token appends depends on more than whether it is the first.
  bool HasAppendedBytes() const;
  // Returns the state of decoding in the middle of a text.
  static DecodeState MiddleOfText();
  // Returns the remaining text at the end of a sequence; an unfinished character becomes U+FFFD.
  size_t DecodeFinish(DecodeState* state, Span<char> out) const;

 private:
  Tokenizer() = default;
  // True if the id gives any text.
  bool IsDecoded(int32_t id, bool skip_special) const;
  // Returns the decoders' input for an id: its TokenText, except for some added tokens.
  StringView DecodedText(int32_t id) const;

  struct Impl;
  const Impl* impl_ = nullptr;
};

}  // namespace arn
