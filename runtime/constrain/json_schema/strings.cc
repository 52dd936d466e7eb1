#include "runtime/constrain/json_schema/strings.h"

#include "runtime/constrain/code_points.h"
#include "runtime/text/utf8.h"

namespace arn::json_schema {

void StringTerms::Init(Terms* terms) {
  terms_ = terms;
  any_character_ = AnyCharacter(terms, TextForm::kJsonString);
  any_content_ = terms->Repeat(any_character_, 0, kUnbounded);
}

Term StringTerms::Character(uint32_t code_point) const {
  const CodePointRange range[] = {{code_point, code_point}};
  return CharacterTerm(terms_, range, TextForm::kJsonString);
}

Term StringTerms::Text(StringView text) const {
  Term term = kEmpty;
  for (const char* end = text.data + text.size; end != text.data;) {
    end = PreviousUtf8(end);
    term = terms_->Concat(Character(ReadValidUtf8(end).code_point), term);
  }
  return term;
}

bool HasText(Terms* terms, Term content, StringView text) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < text.size && content != kNothing; ++i) {
    const auto byte = static_cast<uint8_t>(text.data[i]);
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      const char spelling[] = {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
      for (const char c : spelling) content = terms->Derive(content, static_cast<uint8_t>(c));
    } else {
      content = terms->Derive(content, byte);
    }
  }
  return content != kNothing && terms->IsNullable(content);
}

}  // namespace arn::json_schema
