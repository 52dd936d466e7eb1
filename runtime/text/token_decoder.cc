#include "runtime/text/token_decoder.h"

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr size_t kMaxReplacementBytes = 1024;
// Longer tokens are not cleaned up; no word vocabulary has them.
constexpr size_t kMaxCleanBytes = 1024;

// Returns the value of a hexadecimal digit; 16 otherwise.
uint32_t HexValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
  return 16;
}

// Returns the byte of "<0x41>"; 256 otherwise.
uint32_t ByteOf(StringView token) {
  if (token.size != 6 || std::memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>') return 256;
  // The reference's number parser accepts a sign.
  const uint32_t high = token.data[3] == '+' ? 0 : HexValue(token.data[3]);
  const uint32_t low = HexValue(token.data[4]);
  return high > 15 || low > 15 ? 256 : high << 4 | low;
}

// Clean-up of WordPiece, applied in order (tokenizers/src/decoders/wordpiece.rs). Each replacement
// shortens the text.
constexpr struct {
  StringView from;
  StringView to;
} kCleanUps[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                 {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                 {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

// Replaces in place; returns the new size.
size_t ReplaceAll(char* text, size_t size, StringView from, StringView to) {
  size_t written = 0;
  for (size_t i = 0; i < size;) {
    if (size - i >= from.size && std::memcmp(text + i, from.data, from.size) == 0) {
      std::memcpy(text + written, to.data, to.size);
      written += to.size;
      i += from.size;
    } else {
      text[written++] = text[i++];
    }
  }
  return written;
}

}  // namespace

Status TokenDecoder::Init(const fbs::Tokenizer& table, Diag* diag) {
  const uint32_t count = table.decoders() == nullptr ? 0 : table.decoders()->size();
  joins_with_spaces_ = count == 0;
  // Position of each decoder in the supported chains; ByteLevel replaces the first three.
  uint32_t reached = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const fbs::Decoder* step = table.decoders()->Get(i);
    const StringView pattern = ViewOf(step->pattern());
    const StringView content = ViewOf(step->content());
    uint32_t place = 0;
    bool is_valid = pattern.size <= kMaxReplacementBytes && content.size <= kMaxReplacementBytes;
    switch (step->kind()) {
      case fbs::DecoderKind::Replace:
      case fbs::DecoderKind::Metaspace:
        place = 1;
        pattern_ = pattern;
        content_ = content;
        is_valid &= pattern.size > 0;
        drops_in_first_ = step->kind() == fbs::DecoderKind::Metaspace && step->start() != 0;
        break;
      case fbs::DecoderKind::ByteFallback:
        place = 2;
        byte_fallback_ = true;
        break;
      case fbs::DecoderKind::ByteLevel:
        // The bundle stores the decoded bytes already.
        place = 2;
        is_valid &= reached == 0;
        break;
      case fbs::DecoderKind::Fuse: place = 3; break;
      case fbs::DecoderKind::Strip:
        place = 4;
        strip_ = content;
        strip_count_ = step->start();
        is_valid &= reached == 3 && step->stop() == 0 && IsValidUtf8(content) && content.size > 0 &&
                    ReadUtf8(content.data, content.data + content.size).bytes == content.size;
        break;
      case fbs::DecoderKind::WordPiece:
        place = 5;
        pattern_ = pattern;
        is_word_piece_ = true;
        cleans_up_ = step->start() != 0;
        is_valid &= reached == 0;
        break;
      case fbs::DecoderKind::WordEnd:
        place = 5;
        pattern_ = pattern;
        is_word_end_ = true;
        is_valid &= reached == 0 && pattern.size > 0;
        break;
      default:
        return diag->Fail(Status::kBadBundle,
                          "tokenizer.decoders[%u].kind is %u, which this version does not know", i,
                          static_cast<unsigned>(step->kind()));
    }
    if (!is_valid || place <= reached) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.decoders[%u] (kind %u) is out of order or has bad texts", i,
                        static_cast<unsigned>(step->kind()));
    }
    reached = place;
  }
  return Status::kOk;
}

size_t TokenDecoder::MaxPieceBytes(size_t max_token_bytes) const {
  const size_t growth =
      pattern_.size == 0
          ? 1
          : static_cast<size_t>(Max<uint64_t>(1, CeilDiv(content_.size, pattern_.size)));
  // A space, the pending bytes and the token; every byte may become U+FFFD.
  return 1 +
         kReplacementText.size * (sizeof State::pending + Max<size_t>(1, max_token_bytes) * growth);
}

bool TokenDecoder::ReadByte(StringView token, uint8_t* byte) const {
  const uint32_t value = byte_fallback_ ? ByteOf(token) : 256;
  *byte = static_cast<uint8_t>(value);
  return value < 256;
}

void TokenDecoder::Token(State* state, StringView token, bool is_last, TextSink* out) const {
  const bool is_first = !state->started;
  state->started = true;
  if (is_word_end_) return WordEndToken(state, token, is_last, out);
  if (byte_fallback_) {
    const uint32_t byte = ByteOf(token);
    if (byte < 256) return PutByte(state, static_cast<uint8_t>(byte), out);
    EndBytes(state, out);
  }
  Spell(token, is_first, [&](StringView bytes) { PutBytes(state, bytes, out); });
}

void TokenDecoder::Bytes(StringView token, bool is_first, TextSink* out) const {
  uint8_t byte = 0;
  bool may_strip = is_first && strip_count_ != 0;
  const auto put = [&](StringView bytes) {
    // The part that begins the text begins with a whole character.
    if (may_strip && bytes.size >= strip_.size &&
        std::memcmp(bytes.data, strip_.data, strip_.size) == 0) {
      bytes = {bytes.data + strip_.size, bytes.size - strip_.size};
      may_strip = false;
    }
    may_strip = may_strip && bytes.size == 0;
    out->Put(bytes);
  };
  if (ReadByte(token, &byte)) {
    const char text = static_cast<char>(byte);
    return put({&text, 1});
  }
  Spell(token, is_first, put);
}

template <typename Put>
void TokenDecoder::Spell(StringView token, bool is_first, const Put& put) const {
  if (is_word_piece_) return SpellWordPiece(token, is_first, put);
  if (joins_with_spaces_ && !is_first) put(StringView(" "));
  if (pattern_.size == 0) return put(token);
  size_t begin = 0;
  for (size_t i = 0; i + pattern_.size <= token.size;) {
    if (std::memcmp(token.data + i, pattern_.data, pattern_.size) != 0) {
      ++i;
      continue;
    }
    put(StringView(token.data + begin, i - begin));
    if (!is_first || !drops_in_first_) put(content_);
    i += pattern_.size;
    begin = i;
  }
  put(StringView(token.data + begin, token.size - begin));
}

template <typename Put>
void TokenDecoder::SpellWordPiece(StringView token, bool is_first, const Put& put) const {
  char text[1 + kMaxCleanBytes];
  size_t size = 0;
  const bool continues =
      token.size >= pattern_.size && std::memcmp(token.data, pattern_.data, pattern_.size) == 0;
  if (!is_first && continues) {
    token = {token.data + pattern_.size, token.size - pattern_.size};
  } else if (!is_first) {
    text[size++] = ' ';
  }
  if (!cleans_up_ || token.size > kMaxCleanBytes) {
    put(StringView(text, size));
    return put(token);
  }
  if (token.size > 0) std::memcpy(text + size, token.data, token.size);
  size += token.size;
  for (const auto& [from, to] : kCleanUps) size = ReplaceAll(text, size, from, to);
  put(StringView(text, size));
}

// Replaces the suffix by a space, or by nothing in the last token.
void TokenDecoder::WordEndToken(State* state, StringView token, bool is_last, TextSink* out) const {
  if (state->space_waits) PutBytes(state, " ", out);
  state->space_waits = false;
  size_t begin = 0;
  for (size_t i = 0; i + pattern_.size <= token.size;) {
    if (std::memcmp(token.data + i, pattern_.data, pattern_.size) != 0) {
      ++i;
      continue;
    }
    PutBytes(state, {token.data + begin, i - begin}, out);
    i += pattern_.size;
    begin = i;
    if (is_last) continue;
    if (i == token.size) {
      state->space_waits = true;
    } else {
      PutBytes(state, " ", out);
    }
  }
  PutBytes(state, {token.data + begin, token.size - begin}, out);
}

void TokenDecoder::Finish(State* state, TextSink* out) const {
  if (byte_fallback_) {
    EndBytes(state, out);
  } else if (state->pending_size > 0) {
    state->pending_size = 0;
    PutCharacter(state, kReplacementText, out);
  }
}

// Adds a byte of a run. The reference decodes a whole run and replaces all of it if it is not
// UTF-8; a stream cannot retract output, so it replaces every byte from the first wrong one on.
void TokenDecoder::PutByte(State* state, uint8_t byte, TextSink* out) const {
  if (state->bad_run) return PutCharacter(state, kReplacementText, out);
  state->pending[state->pending_size++] = byte;
  const char* pending = reinterpret_cast<const char*>(state->pending);
  const Utf8Char c = ReadUtf8(pending, pending + state->pending_size);
  if (c.kind == Utf8Kind::kIncomplete) return;
  const size_t size = state->pending_size;
  state->pending_size = 0;
  if (c.kind == Utf8Kind::kValid) return PutCharacter(state, {pending, size}, out);
  InvalidBytes(state, size, out);
  state->bad_run = true;
}

void TokenDecoder::EndBytes(State* state, TextSink* out) const {
  const size_t size = state->pending_size;
  state->pending_size = 0;
  state->bad_run = false;
  InvalidBytes(state, size, out);
}

void TokenDecoder::InvalidBytes(State* state, size_t count, TextSink* out) const {
  state->started = true;
  for (size_t i = 0; i < count; ++i) PutCharacter(state, kReplacementText, out);
}

// Adds bytes whose characters may span tokens. Each invalid part becomes one U+FFFD, as in Rust's
// String::from_utf8_lossy.
void TokenDecoder::PutBytes(State* state, StringView bytes, TextSink* out) const {
  const char* const end = bytes.data + bytes.size;
  const char* p = bytes.data;
  while (p != end) {
    if (state->pending_size == 0) {
      const Utf8Char c = ReadUtf8(p, end);
      if (c.kind == Utf8Kind::kIncomplete) {
        std::memcpy(state->pending, p, c.bytes);
        state->pending_size = c.bytes;
      } else {
        PutCharacter(state, c.kind == Utf8Kind::kValid ? StringView(p, c.bytes) : kReplacementText,
                     out);
      }
      p += c.bytes;
      continue;
    }
    state->pending[state->pending_size++] = static_cast<uint8_t>(*p);
    const char* pending = reinterpret_cast<const char*>(state->pending);
    const Utf8Char c = ReadUtf8(pending, pending + state->pending_size);
    if (c.kind == Utf8Kind::kInvalid) {
      // The new byte does not continue the pending ones; it is read again by itself.
      state->pending_size = 0;
      PutCharacter(state, kReplacementText, out);
      continue;
    }
    if (c.kind == Utf8Kind::kValid) {
      state->pending_size = 0;
      PutCharacter(state, {pending, c.bytes}, out);
    }
    ++p;
  }
}

void TokenDecoder::PutCharacter(State* state, StringView character, TextSink* out) const {
  if (state->stripped < strip_count_) {
    if (character == strip_) {
      ++state->stripped;
      return;
    }
    state->stripped = strip_count_;
  }
  out->Put(character);
}

}  // namespace arn
