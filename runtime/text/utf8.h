// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;
inline constexpr StringView kReplacementText{"\xEF\xBF\xBD", 3};

enum class Utf8Kind : uint8_t {
  kValid,       // `bytes` bytes are the character `code_point`
  kIncomplete,  // the text ends inside a character that could still become valid
  kInvalid,     // `bytes` bytes can never begin a character (the maximal subpart of Unicode 3.9)
};
struct Utf8Char {
  uint32_t code_point;
  uint8_t bytes;
  Utf8Kind kind;
};

// The character at p; p < end.
Utf8Char ReadUtf8(const char* p, const char* end);

// The character at p of text that is known to be valid.
inline Utf8Char ReadValidUtf8(const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<uint8_t>(p[i])); };
  const uint32_t b0 = byte(0);
  if (b0 < 0x80) return {b0, 1, Utf8Kind::kValid};
  if (b0 < 0xE0) return {(b0 & 0x1F) << 6 | (byte(1) & 0x3F), 2, Utf8Kind::kValid};
  if (b0 < 0xF0) {
    return {(b0 & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3, Utf8Kind::kValid};
  }
  return {(b0 & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4,
          Utf8Kind::kValid};
}

// The first byte of the character that ends before `end`, in valid text that begins before it.
inline const char* PreviousUtf8(const char* end) {
  do {
    --end;
  } while ((static_cast<uint8_t>(*end) & 0xC0) == 0x80);
  return end;
}

// At most 4 bytes; `code_point` is a scalar value. Returns the bytes written.
size_t WriteUtf8(uint32_t code_point, char* out);

bool IsValidUtf8(StringView text);

// Bytes of the text with every invalid part replaced by U+FFFD; written to `out` unless it is null.
// At most 3 * text.size.
size_t ReplaceInvalidUtf8(StringView text, char* out);

}  // namespace arn
