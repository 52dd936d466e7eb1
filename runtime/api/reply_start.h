// Where a reply begins, by the end of the prompt before it.
#pragma once

#include <string_view>

#include "runtime/bundle/chat_reply.h"
#include "runtime/constrain/tool_calls.h"

namespace arn::api {

// Templates may open the reasoning at the end of the prompt, or close an empty one.
inline ReplyStart StartOfReply(const chat::ReplyFormat& format, std::string_view prompt) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto trim = [kSpace](std::string_view text) {
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return std::string_view();
    return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  };
  // Takes a mark off the end of the prompt.
  const auto take = [&prompt, trim](std::string_view mark) {
    mark = trim(mark);
    prompt = trim(prompt);
    const bool has_mark = !mark.empty() && prompt.size() >= mark.size() &&
                          prompt.substr(prompt.size() - mark.size()) == mark;
    if (has_mark) prompt.remove_suffix(mark.size());
    return has_mark;
  };
  if (!format.has_reasoning()) return ReplyStart::kOpen;
  if (take(format.reasoning_begin)) return ReplyStart::kInReasoning;
  const bool is_closed = take(format.reasoning_end) && take(format.reasoning_begin);
  return is_closed ? ReplyStart::kInText : ReplyStart::kOpen;
}

}  // namespace arn::api
