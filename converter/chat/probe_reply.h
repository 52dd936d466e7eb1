// Finds how a chat template writes reasoning and tool calls into a reply, by rendering
// conversations with probe names and values and looking at the text around them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "converter/base/reply_format_text.h"

namespace arn::convert {

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
