// Terms of JSON string contents: what is between the quotes (RFC 8259, 7). A character may be
// written in every way that JSON has: as itself where that is allowed, as \uXXXX (a surrogate pair
// above U+FFFF) in either case, or by its short escape. Unpaired surrogates are no characters.
#pragma once

#include "runtime/constrain/json_schema/document.h"
#include "runtime/constrain/terms.h"

namespace arn::json_schema {

class StringTerms {
 public:
  void Init(Terms* terms);

  Term any_character() const { return any_character_; }
  Term any_content() const { return any_content_; }
  Term Character(uint32_t code_point) const;
  // Every spelling of the text. REQUIRES: valid UTF-8.
  Term Text(StringView text) const;

  Terms* terms() const { return terms_; }

 private:
  Terms* terms_ = nullptr;
  Term any_character_ = kNothing;
  Term any_content_ = kNothing;
};

// Whether the language of `content` has the text, which is looked up by one of its spellings.
// REQUIRES: IsRegular(content).
bool HasText(Terms* terms, Term content, StringView text);

}  // namespace arn::json_schema
