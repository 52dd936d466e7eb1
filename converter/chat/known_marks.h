// Adds what is known of calls and reasoning that a chat template does not show.
#pragma once

#include "converter/base/reply_format_text.h"
#include "converter/chat/probe_reply.h"

namespace arn::convert {

// Completes what the template has shown, by the texts it has shown and the tokens of the
// vocabulary.
void AddKnownMarks(const ReplyProbe& probe, ReplyFormatText* format);

// Leaves a format without calls.
void ForgetCalls(ReplyFormatText* format);

}  // namespace arn::convert
