// WriteReplyMessage: the message of a reply, from the text that the model wrote.
#pragma once

#include <cstdint>
#include <string_view>

#include "platform/base/span.h"
#include "runtime/chat/reply_parser.h"
#include "runtime/conversation/json_writer.h"

namespace arn {

struct WrittenReply {
  std::string_view text;
  const chat::ReplyFormat* format = nullptr;
  const chat::ToolTypes* tools = nullptr;
  bool begins_in_reasoning = false;  // the prompt ended with the beginning of the reasoning
};

// Writes {"role": "assistant", "content", ["reasoning_content"], ["tool_calls"]}, with the complete
// calls only. `arena` is scratch. Returns the number of calls.
uint32_t WriteReplyMessage(const WrittenReply& reply, Span<std::byte> arena, JsonWriter* writer);

}  // namespace arn
