#include "runtime/chat/reply_mark.h"

namespace arn::chat {

size_t LeadingSpaces(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsSpace(text[n])) ++n;
  return n;
}

size_t TrailingSpaces(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsSpace(text[text.size() - 1 - n])) ++n;
  return n;
}

Match CompareMark(std::string_view text, std::string_view mark, size_t* used) {
  size_t at = 0, in_mark = LeadingSpaces(mark);
  if (in_mark == mark.size()) return Match::kNo;
  for (;;) {
    at += LeadingSpaces(text.substr(at));
    if (at == text.size()) return Match::kPartial;
    if (text[at] != mark[in_mark]) return Match::kNo;
    ++at;
    ++in_mark;
    in_mark += LeadingSpaces(mark.substr(in_mark));
    if (in_mark == mark.size()) {
      *used = at;
      return Match::kFull;
    }
  }
}

}  // namespace arn::chat
