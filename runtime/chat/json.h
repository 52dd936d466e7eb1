// JSON text to values and back.
#pragma once

#include "runtime/chat/heap.h"

namespace arn::chat {

// How deep arrays and objects may lie in each other.
inline constexpr uint32_t kMaxJsonDepth = 100;

// Strict JSON (RFC 8259): no NaN, nothing behind the value, valid UTF-8, no lone surrogates. Of a
// key that comes twice the last value counts, at the place of the first, as Python's json has it.
// Strings without escapes point into `text`. kBadArgument with "WHAT: at byte N: ..." otherwise.
Status ReadJson(std::string_view text, const char* what, Heap* heap, Diag* diag, Value* out);

struct JsonStyle {
  bool is_ascii = false;  // \u escapes for all that is not ASCII
  bool sorts_keys = false;
  Value indent = NoneValue();  // kNone: all on one line; kInt or kString: what a level has
  std::string_view item_separator;
  std::string_view key_separator;
};
// json.dumps(value).
Status AppendJson(const Value& value, const JsonStyle& style, Heap* heap, TextBuilder* out);

}  // namespace arn::chat
