// Decodes token texts to text, as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/tokenizer.h"

namespace arn {

// Stores text and counts all bytes, including those that do not fit.
class TextSink {
 public:
  explicit TextSink(Span<char> out) : out_(out) {}
  void Put(StringView text) {
    if (text.size > 0 && size_ <= out_.size() && text.size <= out_.size() - size_) {
      std::memcpy(out_.data() + size_, text.data, text.size);
    }
    size_ += text.size;
  }
  size_t size() const { return size_; }
  bool fits() const { return size_ <= out_.size(); }

 private:
  Span<char> out_;
  size_t size_ = 0;
};

// Supported decoder chains; each part is optional:
//   Replace or Metaspace, then ByteFallback, then Fuse, then Strip (only after Fuse)
//   ByteLevel, then Fuse
//   WordPiece or WordEnd alone
// Without decoders tokens are joined by spaces.
class TokenDecoder {
 public:
  using State = Tokenizer::DecodeState;

  Status Init(const fbs::Tokenizer& table, Diag* diag);

  // Returns the maximum bytes written by Token or Finish for tokens of at most max_token_bytes.
  size_t MaxPieceBytes(size_t max_token_bytes) const;

  // `is_last`: no token follows. A stream passes false and calls Finish.
  void Token(State* state, StringView token, bool is_last, TextSink* out) const;
  void Finish(State* state, TextSink* out) const;
  // Writes the bytes that the token appends in the middle of a text, or as its first token. They
  // need not be whole characters. REQUIRES: HasBytes().
  void Bytes(StringView token, bool is_first, TextSink* out) const;
  // False if those bytes depend on more than whether the token is the first.
  bool HasBytes() const { return !is_word_end_ && strip_count_ <= 1; }

  // True if the token is a byte token ("<0x0A>") that must be joined with its neighbours.
  bool ReadByte(StringView token, uint8_t* byte) const;
  // Replaces each byte of a run that is not valid UTF-8 by U+FFFD.
  void InvalidBytes(State* state, size_t count, TextSink* out) const;

 private:
  // Calls put(StringView) for the parts of a token that is no byte token.
  template <typename Put>
  void Spell(StringView token, bool is_first, const Put& put) const;
  template <typename Put>
  void SpellWordPiece(StringView token, bool is_first, const Put& put) const;
  void WordEndToken(State* state, StringView token, bool is_last, TextSink* out) const;
  void PutByte(State* state, uint8_t byte, TextSink* out) const;
  void PutBytes(State* state, StringView bytes, TextSink* out) const;
  void PutCharacter(State* state, StringView character, TextSink* out) const;
  void EndBytes(State* state, TextSink* out) const;

  bool joins_with_spaces_ = false;
  bool is_word_piece_ = false;
  bool is_word_end_ = false;
  bool cleans_up_ = false;  // WordPiece: removes spaces before punctuation
  bool byte_fallback_ = false;
  bool drops_in_first_ = false;  // Metaspace: removes the pattern in the first token
  StringView pattern_;
  StringView content_;
  StringView strip_;
  uint32_t strip_count_ = 0;
};

}  // namespace arn
