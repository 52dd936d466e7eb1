// Terms of the contents of strings: what is between the quotes (RFC 8259, 7). How a character may
// be written is a TextForm. Unpaired surrogates are no characters.
#pragma once

#include "runtime/constrain/code_points.h"
#include "runtime/constrain/json_schema/document.h"
#include "runtime/constrain/terms.h"

namespace arn::json_schema {

class StringTerms {
 public:
  // contents: those that there are; kNothing: all of the form.
  void Init(Terms* terms, TextForm form, Term contents);

  TextForm form() const { return form_; }
  Term any_character() const { return any_character_; }
  Term any_content() const { return any_content_; }
  Term Character(uint32_t code_point) const;
  // Every spelling of the text. REQUIRES: valid UTF-8.
  Term Text(StringView text) const;
  // Returns whether the language of `content` has the text, looked up by a spelling that every form
  // has. REQUIRES: IsRegular(content).
  bool HasText(Term content, StringView text) const;

  // Every text short enough to be captured (captured_text.h).
  Term Capturable() const { return terms_->Repeat(any_character_, 0, kMaxCapturable); }
  static constexpr uint32_t kMaxCapturable = 1024;

 private:
  Terms* terms_ = nullptr;
  TextForm form_ = TextForm::kJsonString;
  Term any_character_ = kNothing;
  Term any_content_ = kNothing;
};

// Returns whether the language of `content` has at least `count` texts, as far as a search of
// bounded length among texts without escapes can tell. REQUIRES: IsRegular(content).
bool CountTexts(Terms* terms, Term content, uint64_t count);

}  // namespace arn::json_schema
