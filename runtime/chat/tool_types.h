// ToolTypes: the types that a list of tools declares for its parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "platform/base/status.h"
#include "runtime/chat/heap.h"
#include "runtime/chat/value.h"

namespace arn::chat {

class ToolTypes {
 public:
  enum class Type : uint8_t {
    kUnknown,  // no such tool or parameter, or a type of its own making
    kString,   // a string, or a string among others
    kOther,    // no string
  };

  // Reads a JSON array of tools as chat templates take them: {"type": "function", "function":
  // {"name", "parameters": {"properties": {...}}}} or the inner object alone. Takes memory from
  // `heap`, which must outlive it, as must `json`. kBadArgument: not such an array.
  Status Read(std::string_view json, Heap* heap, Diag* diag);

  Type TypeOf(std::string_view tool, std::string_view parameter) const;

 private:
  Value tools_ = NoneValue();
};

}  // namespace arn::chat
