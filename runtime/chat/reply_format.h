// Reads how a model writes reasoning and tool calls into a reply.
#pragma once

#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/bundle/chat_reply.h"

namespace arn {

namespace fbs {
struct ReplyFormat;  // runtime/bundle/text.fbs
}

namespace chat {

// Reads a bundle's table, which is untrusted. Null gives a format without reasoning and calls.
Status ReadReplyFormat(const fbs::ReplyFormat* table, ReplyFormat* out, Diag* diag);
// Returns where the reply to a prompt begins.
ReplyStart StartOfReply(const ReplyFormat& format, std::string_view prompt);

}  // namespace chat
}  // namespace arn
