// Reads a JSON text into an array of values, all inside an arena.
//
// Differs from the reader of chat templates where a schema needs it: numbers stay text, so that
// none is rounded, duplicate keys are refused, and each value knows its parent and its offset.
#pragma once

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/constrain/json_schema/list.h"

namespace arn::json_schema {

enum class JsonKind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

// No value.
inline constexpr uint32_t kNone = UINT32_MAX;
// Maximum nesting of arrays and objects.
inline constexpr uint32_t kMaxDepth = 256;

struct Json {
  JsonKind kind = JsonKind::kNull;
  uint32_t parent = kNone;
  uint32_t first = kNone;  // first item or member
  uint32_t next = kNone;   // next item or member of the parent
  uint32_t count = 0;      // items or members
  uint32_t offset = 0;     // first byte in the text
  StringView text;         // of a number as written, of a string without escapes
  StringView key;          // of a member of an object, without escapes
};

class Document {
 public:
  // Parses strict JSON (RFC 8259) in valid UTF-8. `text` must outlive the document: strings
  // without escapes point into it. On failure kBadArgument with the offset, or kOutOfMemory.
  Status Read(StringView text, Arena* arena, Diag* diag);

  static constexpr uint32_t kRoot = 0;
  uint32_t size() const { return values_.size(); }
  const Json& operator[](uint32_t value) const { return values_[value]; }
  // Returns the member named `key`, or kNone. REQUIRES: `object` is an object.
  uint32_t Find(uint32_t object, StringView key) const;
  // Writes the JSON pointer of a value (RFC 6901), as "#" and a URI fragment without percent signs,
  // NUL-terminated. Cuts the front of a pointer that is longer than `capacity`.
  const char* Pointer(uint32_t value, char* out, size_t capacity) const;

 private:
  friend class DocumentReader;
  List<Json> values_;
};

int CompareText(StringView a, StringView b);
inline bool LessText(StringView a, StringView b) { return CompareText(a, b) < 0; }

}  // namespace arn::json_schema
