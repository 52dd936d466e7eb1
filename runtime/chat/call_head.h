// The head of a call: its name and id, up to the arguments.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/bundle/chat_reply.h"
#include "runtime/chat/reply_mark.h"

namespace arn::chat {

// Texts point into the text that was read.
struct CallHead {
  std::string_view name;
  std::string_view id;
  bool has_id = false;  // before the arguments
  size_t bytes = 0;     // through the last mark before the arguments
};

// Reads what follows the beginning of calls or a separator. is_other: in the format's other
// spelling. kPartial: the text may become a head; kFull: *out is one.
Match ReadCallHead(const ReplyFormat& format, bool is_other, std::string_view text, CallHead* out);

}  // namespace arn::chat
