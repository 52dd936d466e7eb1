// ReplyFormatText: how a chat template's model writes reasoning and tool calls, owned.
#pragma once

#include <string>

#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

// The texts of runtime/bundle/chat_reply.h.
struct ReplyFormatText {
  std::string reasoning_begin, reasoning_end, content_begin;
  fbs::ArgumentSyntax arguments = fbs::ArgumentSyntax::None;
  std::string calls_begin, name_begin, name_end, id_begin, call_separator, calls_end;
  std::string parameter_begin, parameter_name_end, parameter_end, quote;
  std::string other_calls_begin, other_name_end;
  bool is_compact = false;
  std::string arguments_begin;
  bool id_has_name = false;

  bool empty() const {
    return reasoning_begin.empty() && content_begin.empty() &&
           arguments == fbs::ArgumentSyntax::None;
  }
};

}  // namespace arn::convert
