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

  // Every text short enough to be captured (captured_text.h).
  Term Capturable() const { return terms_->Repeat(any_character_, 0, kMaxCapturable); }
  static constexpr uint32_t kMaxCapturable = 1024;

 private:
  Terms* terms_ = nullptr;
  Term any_character_ = kNothing;
  Term any_content_ = kNothing;
};

// Returns whether the language of `content` has the text, looked up by one of its spellings.
// REQUIRES: IsRegular(content).
bool HasText(Terms* terms, Term content, StringView text);

// Returns whether the language of `content` has at least `count` texts, as far as a search of
// bounded length among texts without escapes can tell. REQUIRES: IsRegular(content).
bool CountTexts(Terms* terms, Term content, uint64_t count);

}  // namespace arn::json_schema
