#include "runtime/chat/call_head.h"

#include "runtime/bundle/call_name.h"

namespace arn::chat {
namespace {

bool IsEmpty(std::string_view mark) { return LeadingSpaces(mark) == mark.size(); }

// Takes a name or an id, which ends before another character, and white space before it.
Match TakeRun(std::string_view* text, size_t max_bytes, std::string_view* out) {
  text->remove_prefix(LeadingSpaces(*text));
  *out = {text->data(), NameSize(*text)};
  text->remove_prefix(out->size());
  if (out->size() > max_bytes) return Match::kNo;
  return text->empty() ? Match::kPartial : Match::kFull;
}

// An empty mark is there before any character.
Match TakeMark(std::string_view* text, std::string_view mark) {
  if (IsEmpty(mark)) return Match::kFull;
  size_t used = 0;
  const Match match = CompareMark(*text, mark, &used);
  text->remove_prefix(used);
  return match;
}

Match TakeId(std::string_view* text, std::string_view end, CallHead* out) {
  out->has_id = true;
  const Match match = TakeRun(text, kMaxCallIdBytes, &out->id);
  return match == Match::kFull ? TakeMark(text, end) : match;
}

// Finds the name in name_begin name name_end number.
bool FindName(const ReplyFormat& format, std::string_view id, std::string_view* name) {
  size_t n_digits = 0;
  while (!id.empty() && id.back() >= '0' && id.back() <= '9') {
    id.remove_suffix(1);
    ++n_digits;
  }
  const size_t n_around = format.name_begin.size() + format.name_end.size();
  if (n_digits == 0 || id.size() <= n_around || id.size() - n_around > kMaxCallNameBytes ||
      !id.starts_with(format.name_begin) || !id.ends_with(format.name_end)) {
    return false;
  }
  *name = {id.data() + format.name_begin.size(), id.size() - n_around};
  return true;
}

}  // namespace

Match ReadCallHead(const ReplyFormat& format, bool is_other, std::string_view text, CallHead* out) {
  *out = CallHead();
  std::string_view rest = text;
  Match match = Match::kFull;
  if (format.id_has_name) {
    match = TakeId(&rest, format.arguments_begin, out);
    if (match == Match::kFull && !FindName(format, out->id, &out->name)) return Match::kNo;
  } else {
    if (!IsEmpty(format.name_begin)) match = TakeId(&rest, format.name_begin, out);
    if (match == Match::kFull) match = TakeRun(&rest, kMaxCallNameBytes, &out->name);
    if (match == Match::kFull && out->name.empty()) return Match::kNo;
    if (match == Match::kFull) {
      match = TakeMark(&rest, is_other ? format.other_name_end : format.name_end);
    }
    if (match == Match::kFull && !IsEmpty(format.arguments_begin)) {
      match = TakeId(&rest, format.arguments_begin, out);
    }
  }
  out->bytes = text.size() - rest.size();
  return match;
}

}  // namespace arn::chat
