#include "converter/chat/escapes.h"

#include <cstdint>

namespace arn::convert {
namespace {

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xC0 | c >> 6);
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xE0 | c >> 12);
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *out += static_cast<char>(0xF0 | c >> 18);
    *out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes the first character of `text` and sets *bytes to its length; 0: not UTF-8.
uint32_t Decode(std::string_view text, size_t* bytes) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  *bytes = 0;
  const uint32_t lead = at(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  if (length == 1) {
    *bytes = 1;
    return lead;
  }
  uint32_t c = lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    c = c << 6 | (at(i) & 0x3F);
  }
  const uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (c < least || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
  *bytes = length;
  return c;
}

bool IsSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// \x, \u and \U: reads `n` hexadecimal digits after the letter at literal[*at].
bool ReadHex(std::string_view literal, size_t n, size_t* at, uint32_t* c) {
  *c = 0;
  for (size_t i = 1; i <= n; ++i) {
    const int digit = *at + i < literal.size() ? HexDigit(literal[*at + i]) : -1;
    if (digit < 0) return false;
    *c = *c << 4 | static_cast<uint32_t>(digit);
  }
  *at += n + 1;
  return true;
}

}  // namespace

size_t WhiteSpaceBytes(std::string_view text) {
  size_t bytes = 0;
  const uint32_t c = Decode(text, &bytes);
  return IsSpace(c) ? bytes : 0;
}

bool IsAllSpace(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = WhiteSpaceBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

size_t TrimmedEnd(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
    if (WhiteSpaceBytes(text.substr(start, end - start)) != end - start) break;
    end = start;
  }
  return end;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t bytes = 0;
    Decode(text, &bytes);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string Unescape(std::string_view literal, std::string* out) {
  static constexpr std::string_view kLetters = "\\'\"abfnrtv\n";
  static constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  for (size_t i = 0; i < literal.size();) {
    if (literal[i] != '\\') {
      *out += literal[i++];
      continue;
    }
    if (++i >= literal.size()) return "a string ends in a backslash";
    const char c = literal[i];
    const size_t known = kLetters.find(c);
    if (known != std::string_view::npos) {
      if (c != '\n') *out += kMeanings[known];
      ++i;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      uint32_t code = 0;
      if (!ReadHex(literal, c == 'x' ? 2 : c == 'u' ? 4 : 8, &i, &code)) {
        return std::string("a string has \\") + c + " without its hexadecimal digits";
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return "a string has an escape that is not a character";
      }
      AppendUtf8(code, out);
    } else if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      for (int n = 0; n < 3 && i < literal.size() && literal[i] >= '0' && literal[i] <= '7'; ++n) {
        code = code * 8 + static_cast<uint32_t>(literal[i++] - '0');
      }
      AppendUtf8(code, out);
    } else if (c == 'N') {
      return "named characters (\\N{...}) are not supported";
    } else {
      *out += '\\';  // not an escape: keeps both characters
    }
  }
  return "";
}

}  // namespace arn::convert
