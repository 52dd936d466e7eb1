// Names and ids of tool calls: runs of letters, digits and _-.:/.
#pragma once

#include <cstddef>
#include <string_view>

namespace arn::chat {

// Maximum bytes of each.
inline constexpr size_t kMaxCallNameBytes = 256;
inline constexpr size_t kMaxCallIdBytes = 512;
// Limits the bytes of an argument's name without quotes, and of a word that is no number.
inline constexpr size_t kMaxBareWordBytes = 128;

// Besides letters and digits.
inline constexpr std::string_view kNameMarks = "_-.:/";

constexpr bool IsNameCharacter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9')) return true;
  for (const char mark : kNameMarks) {
    if (c == mark) return true;
  }
  return false;
}

// Returns the number of such characters at the start.
constexpr size_t NameSize(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsNameCharacter(text[n])) ++n;
  return n;
}

// True if any name and number fit into an id `name_begin name name_end number`, and can be told
// apart in it.
constexpr bool IsNameInId(std::string_view name_begin, std::string_view name_end) {
  constexpr size_t kNumberBytes = 16;  // of more calls than a conversation has
  if (name_end.empty()) return false;
  const char last = name_end[name_end.size() - 1];
  return NameSize(name_begin) == name_begin.size() && NameSize(name_end) == name_end.size() &&
         (last < '0' || last > '9') &&
         name_begin.size() + kMaxCallNameBytes + name_end.size() + kNumberBytes <= kMaxCallIdBytes;
}

}  // namespace arn::chat
