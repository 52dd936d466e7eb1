// Reads and writes UTF-8 characters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;
inline constexpr StringView kReplacementText{"\xEF\xBF\xBD", 3};

enum class Utf8Kind : uint8_t {
  kValid,       // `bytes` bytes form the character `code_point`
  kIncomplete,  // the text ends inside a possibly valid character
  kInvalid,     // `bytes` bytes cannot begin a character (maximal subpart, Unicode 3.9)
};
struct Utf8Char {
  uint32_t code_point;
  uint8_t bytes;
  Utf8Kind kind;
};

// Reads the character at p. REQUIRES: p < end.
Utf8Char ReadUtf8(const char* p, const char* end);

// Reads the character at p. REQUIRES: valid UTF-8.
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

// Returns the first byte of the character before `end`. REQUIRES: valid, non-empty text before
// `end`.
inline const char* PreviousUtf8(const char* end) {
  do {
    --end;
  } while ((static_cast<uint8_t>(*end) & 0xC0) == 0x80);
  return end;
}

// Writes at most 4 bytes and returns their number. REQUIRES: `code_point` is a scalar value.
size_t WriteUtf8(uint32_t code_point, char* out);

bool IsValidUtf8(StringView text);

// Returns the size of the text with invalid parts replaced by U+FFFD, at most 3 * text.size. Writes
// it to `out` unless null.
size_t ReplaceInvalidUtf8(StringView text, char* out);

}  // namespace arn
