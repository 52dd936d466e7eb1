// ParameterValue: writes the value of a tool call's parameter, which came without quotes, as JSON.
#pragma once

#include <cstddef>

#include "runtime/chat/reply_sink.h"
#include "runtime/chat/tool_types.h"

namespace arn::chat {

// A parameter that the tools declare as a string is sent as it comes. Any other is collected: it is
// sent as it is if it is one JSON value, and as a string otherwise or if it is longer than
// kMaxBytes.
class ParameterValue {
 public:
  static constexpr size_t kMaxBytes = 512;

  void Start(ToolTypes::Type type, ReplySink* sink);
  void Add(char byte, ReplySink* sink);
  void End(ReplySink* sink);

 private:
  void BeginString(ReplySink* sink);

  bool is_string_ = false;  // is sent as it comes
  size_t size_ = 0;
  char bytes_[kMaxBytes];
};

}  // namespace arn::chat
