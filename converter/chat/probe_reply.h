// Finds how a chat template writes reasoning and tool calls into a reply, by rendering
// conversations with probe names and values and looking at the text around them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

// The texts of runtime/chat/reply_format.h, owned.
struct ReplyFormatText {
  std::string reasoning_begin, reasoning_end, content_begin;
  fbs::ArgumentSyntax arguments = fbs::ArgumentSyntax::None;
  std::string calls_begin, name_begin, name_end, id_begin, call_separator, calls_end;
  std::string parameter_begin, parameter_name_end, parameter_end, quote;

  bool empty() const {
    return reasoning_begin.empty() && content_begin.empty() &&
           arguments == fbs::ArgumentSyntax::None;
  }
};

struct ReplyProbe {
  // Renders `messages` with `tools` (JSON arrays; "" for no tools). Nothing if the template raises
  // or fails.
  std::function<std::optional<std::string>(const std::string& messages, const std::string& tools,
                                           bool add_generation_prompt)>
      render;
  // True if the text is a single token of the vocabulary.
  std::function<bool(const std::string& text)> is_token;
};

// Looks for calls in the template's rendering first. A template that leaves tool calls to the
// message's content shows none: then known pairs of marks are looked up in the vocabulary. Texts
// longer than kMaxReplyMarkBytes count as not found.
ReplyFormatText FindReplyFormat(const ReplyProbe& probe);

}  // namespace arn::convert
