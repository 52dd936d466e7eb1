// What Python's str does, on UTF-8. Positions and counts of characters are code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/chat/heap.h"

namespace arn::chat {

uint32_t CountChars(std::string_view text);
// Byte offset of the character number `index`, which is at most CountChars(text).
size_t OffsetOfChar(std::string_view text, uint64_t index);

bool IsSpace(uint32_t code_point);      // str.isspace
bool IsPrintable(uint32_t code_point);  // str.isprintable

enum class Side : uint8_t { kBoth = 0, kLeft, kRight };
// Without white space, or, when `chars` is not null, without characters that are among them.
std::string_view Strip(std::string_view text, Side side, const std::string_view* chars);

enum class Case : uint8_t { kLower = 0, kUpper, kTitle, kCapitalize, kSwap };
Status ChangeCase(std::string_view text, Case to, Heap* heap, Value* out);

// str.islower and the like.
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

// Line by line, as str.splitlines: the end of the line that begins at `begin`, and *next, where
// the next one begins.
size_t LineEnd(std::string_view text, size_t begin, size_t* next);

}  // namespace arn::chat
