// Finds the marks of a reply format at the start of a text, without regard to ASCII white space:
// models write "<tool_call>{" for "<tool_call>\n{".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arn::chat {

inline bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

enum class Match : uint8_t {
  kNo,
  kPartial,  // the text is white space, or a part of the mark
  kFull,
};

// Compares the start of `text` with a mark. kFull: *used is the number of bytes through the mark's
// last character that is not white space. A mark without such characters never matches.
Match CompareMark(std::string_view text, std::string_view mark, size_t* used);

// Returns the number of white space characters that `text` begins (ends) with.
size_t LeadingSpaces(std::string_view text);
size_t TrailingSpaces(std::string_view text);

}  // namespace arn::chat
