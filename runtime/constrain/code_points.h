// Sets of characters as terms over bytes.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/constrain/terms.h"

namespace arn {

// Characters are Unicode scalar values: code points up to U+10FFFF without surrogates.
inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

struct CodePointRange {
  uint32_t first, last;
};

// How a character is written.
enum class TextForm : uint8_t {
  kUtf8,
  // As in a JSON string: UTF-8 except '"', '\' and controls; or \uXXXX in either case, a pair of
  // them above U+FFFF; or \" \\ \/ \b \f \n \r \t.
  kJsonString,
  // The one way of those that writers of JSON have: UTF-8; \" \\ \b \f \n \r \t; and \u00xx in
  // lower case for the other controls.
  kCanonicalJson,
};

// Pushes the general categories of all code points, as runs: first code point << 8 | category.
// Takes milliseconds, so parsers do it once, for AddProperty(). Empty if the Terms failed.
Span<const uint32_t> PushCategories(Terms* terms);

// A set under construction, in the words that a Terms' parsers may push. Release it with
// terms->ReleaseTo(mark()).
class CodePoints {
 public:
  explicit CodePoints(Terms* terms) : terms_(terms), mark_(terms->PushedMark()) {}

  void Add(uint32_t first, uint32_t last) {
    terms_->Push(first);
    terms_->Push(last);
  }
  // Adds the code points of a general category ("L", "Lu", "Letter", "Uppercase_Letter") or of Any,
  // ASCII or Assigned; returns false for other names.
  bool AddProperty(StringView name, Span<const uint32_t> categories);
  // Replaces what was added since `from`, a PushedMark(), by all other code points.
  void Negate(uint32_t from);
  // Sorts, joins ranges, and returns them.
  Span<const CodePointRange> Ranges();
  uint32_t mark() const { return mark_; }

 private:
  uint32_t Normalize(uint32_t from);

  Terms* terms_;
  uint32_t mark_;
};

// The term of one character of the set, kNothing if there is none. REQUIRES: sorted ranges with
// gaps between them.
Term CharacterTerm(Terms* terms, Span<const CodePointRange> ranges, TextForm form);
Term AnyCharacter(Terms* terms, TextForm form);

}  // namespace arn
