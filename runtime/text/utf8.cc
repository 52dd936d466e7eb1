#include "runtime/text/utf8.h"

#include <cstring>

namespace arn {

Utf8Char ReadUtf8(const char* p, const char* end) {
  const uint8_t b0 = static_cast<uint8_t>(p[0]);
  if (b0 < 0x80) return {b0, 1, Utf8Kind::kValid};
  // The second byte's range depends on the first: no overlong forms, surrogates or values past
  // U+10FFFF (Unicode, table 3-7).
  uint8_t low = 0x80, high = 0xBF;
  uint8_t size = 0;
  uint32_t code_point = 0;
  if (b0 >= 0xC2 && b0 <= 0xDF) {
    size = 2;
    code_point = b0 & 0x1F;
  } else if (b0 >= 0xE0 && b0 <= 0xEF) {
    size = 3;
    code_point = b0 & 0x0F;
    if (b0 == 0xE0) low = 0xA0;
    if (b0 == 0xED) high = 0x9F;
  } else if (b0 >= 0xF0 && b0 <= 0xF4) {
    size = 4;
    code_point = b0 & 0x07;
    if (b0 == 0xF0) low = 0x90;
    if (b0 == 0xF4) high = 0x8F;
  } else {
    return {0, 1, Utf8Kind::kInvalid};
  }
  for (uint8_t i = 1; i < size; ++i) {
    if (p + i == end) return {0, i, Utf8Kind::kIncomplete};
    const uint8_t b = static_cast<uint8_t>(p[i]);
    if (b < low || b > high) return {0, i, Utf8Kind::kInvalid};
    low = 0x80;
    high = 0xBF;
    code_point = code_point << 6 | (b & 0x3F);
  }
  return {code_point, size, Utf8Kind::kValid};
}

size_t WriteUtf8(uint32_t code_point, char* out) {
  if (code_point < 0x80) {
    out[0] = static_cast<char>(code_point);
    return 1;
  }
  if (code_point < 0x800) {
    out[0] = static_cast<char>(0xC0 | code_point >> 6);
    out[1] = static_cast<char>(0x80 | (code_point & 0x3F));
    return 2;
  }
  if (code_point < 0x10000) {
    out[0] = static_cast<char>(0xE0 | code_point >> 12);
    out[1] = static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
    out[2] = static_cast<char>(0x80 | (code_point & 0x3F));
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | code_point >> 18);
  out[1] = static_cast<char>(0x80 | (code_point >> 12 & 0x3F));
  out[2] = static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
  out[3] = static_cast<char>(0x80 | (code_point & 0x3F));
  return 4;
}

bool IsValidUtf8(StringView text) {
  const char* p = text.data;
  const char* const end = p + text.size;
  while (p != end) {
    uint64_t word;
    if (end - p >= 8) {
      std::memcpy(&word, p, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        p += 8;
        continue;
      }
    }
    const Utf8Char c = ReadUtf8(p, end);
    if (c.kind != Utf8Kind::kValid) return false;
    p += c.bytes;
  }
  return true;
}

size_t ReplaceInvalidUtf8(StringView text, char* out) {
  const char* const end = text.data + text.size;
  size_t size = 0;
  for (const char* p = text.data; p != end;) {
    const Utf8Char c = ReadUtf8(p, end);
    const bool valid = c.kind == Utf8Kind::kValid;
    const StringView piece = valid ? StringView(p, c.bytes) : kReplacementText;
    if (out != nullptr) std::memcpy(out + size, piece.data, piece.size);
    size += piece.size;
    p += c.bytes;
  }
  return size;
}

}  // namespace arn
