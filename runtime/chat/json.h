// Reads and writes JSON.
#pragma once

#include "runtime/chat/heap.h"

namespace arn::chat {

// Maximum nesting of arrays and objects.
inline constexpr uint32_t kMaxJsonDepth = 100;

// Parses strict JSON (RFC 8259): no NaN, no trailing data, valid UTF-8, no lone surrogates. Of
// duplicate keys the last value wins at the first position, as in Python's json. Strings without
// escapes point into `text`. On failure kBadArgument with "WHAT: at byte N: ...".
Status ReadJson(std::string_view text, const char* what, Heap* heap, Diag* diag, Value* out);

struct JsonStyle {
  bool is_ascii = false;  // \u escapes for non-ASCII characters
  bool sorts_keys = false;
  Value indent = NoneValue();  // kNone: single line; kInt or kString: indent per level
  std::string_view item_separator;
  std::string_view key_separator;
};
// json.dumps(value).
Status AppendJson(const Value& value, const JsonStyle& style, Heap* heap, TextBuilder* out);

}  // namespace arn::chat
