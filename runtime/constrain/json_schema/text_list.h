// A sorted list of texts as a term: a tree of their characters that is never built, but expanded
// where the text goes.
#pragma once

#include <algorithm>

#include "runtime/constrain/json_schema/strings.h"
#include "runtime/text/utf8.h"

namespace arn::json_schema {

struct TextList {
  StringTerms strings;
  Span<const StringView> texts;  // in the order of their bytes, each once
};

// The texts [first, end), which have their first `position` bytes in common.
struct TextRange {
  uint32_t first = 0, end = 0, position = 0;
};

// Takes the first text off the range if it ends at its position.
inline bool TakeEnd(Span<const StringView> texts, TextRange* range) {
  if (range->first == range->end || texts[range->first].size != range->position) return false;
  ++range->first;
  return true;
}

// Takes the texts off the range that have the same next character, and returns them with it in
// *code_point. REQUIRES: the range is not empty, and no text ends at its position.
inline TextRange TakeCharacter(Span<const StringView> texts, TextRange* range,
                               uint32_t* code_point) {
  const StringView text = texts[range->first];
  const Utf8Char c = ReadValidUtf8(text.data + range->position);
  const StringView begin(text.data, range->position + c.bytes);
  // The texts behind the first go on with as many bytes or more: longer characters have larger
  // first bytes.
  const StringView* const last = std::partition_point(
      texts.begin() + range->first, texts.begin() + range->end,
      [&begin](StringView other) { return std::memcmp(other.data, begin.data, begin.size) == 0; });
  const TextRange taken = {range->first, static_cast<uint32_t>(last - texts.begin()),
                           range->position + c.bytes};
  range->first = taken.end;
  *code_point = c.code_point;
  return taken;
}

// A pointer as two words of a custom term's data.
struct PointerWords {
  uint32_t words[2];
};
inline PointerWords ToWords(const void* pointer) {
  const uint64_t value = reinterpret_cast<uintptr_t>(pointer);
  return {{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)}};
}
template <typename T>
const T* FromWords(const uint32_t* words) {
  return reinterpret_cast<const T*>(static_cast<uintptr_t>(uint64_t{words[1]} << 32 | words[0]));
}

// The contents of the strings of a list. `list` must outlive the terms.
Term TextListTerm(Terms* terms, const TextList* list);
// The contents of all other strings. REQUIRES: the list is not empty.
Term OtherTextTerm(Terms* terms, const TextList* list);
// The plain spellings of numbers of a list of such spellings, with more zeros at their ends.
Term NumberListTerm(Terms* terms, const TextList* list);

}  // namespace arn::json_schema
