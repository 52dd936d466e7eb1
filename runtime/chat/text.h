// Python's str operations on UTF-8. Character positions and counts are code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/chat/heap.h"

namespace arn::chat {

uint32_t CountChars(std::string_view text);
// Returns the byte offset of character `index` <= CountChars(text).
size_t OffsetOfChar(std::string_view text, uint64_t index);

bool IsSpace(uint32_t code_point);      // str.isspace
bool IsPrintable(uint32_t code_point);  // str.isprintable

enum class Side : uint8_t { kBoth = 0, kLeft, kRight };
// Strips white space, or the characters in `chars` if not null.
std::string_view Strip(std::string_view text, Side side, const std::string_view* chars);

enum class Case : uint8_t { kLower = 0, kUpper, kTitle, kCapitalize, kSwap };
Status ChangeCase(std::string_view text, Case to, Heap* heap, Value* out);

// str.islower and similar.
enum class CharTest : uint8_t {
  kAlpha = 0,
  kAlnum,
  kDigit,
  kNumeric,
  kSpace,
  kLower,
  kUpper,
  kTitle,
  kAscii
};
bool IsAll(std::string_view text, CharTest test);

// str.splitlines, one line at a time: returns the end of the line at `begin`; *next: start of the
// next line.
size_t LineEnd(std::string_view text, size_t begin, size_t* next);

}  // namespace arn::chat
