#include "runtime/constrain/json_schema/strings.h"

#include <cstring>

#include "runtime/text/utf8.h"

namespace arn::json_schema {

void StringTerms::Init(Terms* terms, TextForm form, Term contents) {
  terms_ = terms;
  form_ = form;
  any_character_ = AnyCharacter(terms, form);
  any_content_ = contents != kNothing ? contents : terms->Repeat(any_character_, 0, kUnbounded);
}

Term StringTerms::Character(uint32_t code_point) const {
  const CodePointRange range[] = {{code_point, code_point}};
  return CharacterTerm(terms_, range, form_);
}

Term StringTerms::Text(StringView text) const {
  Term term = kEmpty;
  for (const char* end = text.data + text.size; end != text.data;) {
    end = PreviousUtf8(end);
    term = terms_->Concat(Character(ReadValidUtf8(end).code_point), term);
  }
  return term;
}

bool StringTerms::HasText(Term content, StringView text) const {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr char kShort[] = "\"\\\b\f\n\r\t", kLetters[] = "\"\\bfnrt";
  const auto derive = [&](char c) { content = terms_->Derive(content, static_cast<uint8_t>(c)); };
  for (size_t i = 0; i < text.size && content != kNothing; ++i) {
    const char c = text.data[i];
    const bool is_escaped =
        form_ != TextForm::kUtf8 && (static_cast<uint8_t>(c) < 0x20 || c == '"' || c == '\\');
    const char* const escape = c == '\0' || !is_escaped ? nullptr : std::strchr(kShort, c);
    if (is_escaped) derive('\\');
    if (escape != nullptr) {
      derive(kLetters[escape - kShort]);
    } else if (is_escaped) {
      for (const char digit : {'u', '0', '0', kHex[c >> 4], kHex[c & 15]}) derive(digit);
    } else {
      derive(c);
    }
  }
  return content != kNothing && terms_->IsNullable(content);
}

bool CountTexts(Terms* terms, Term content, uint64_t count) {
  constexpr uint32_t kMaxSteps = 20'000, kMaxBytes = 256;
  if (count == 0) return true;
  if (content == kNothing) return false;
  // Depth first: the term at each depth, and the byte to try next.
  Term path[kMaxBytes];
  uint32_t next[kMaxBytes];
  uint32_t depth = 0;
  uint64_t n = terms->IsNullable(content) ? 1 : 0;
  path[0] = content;
  next[0] = 0x20;
  for (uint32_t step = 0; step < kMaxSteps && n < count; ++step) {
    uint32_t byte = next[depth];
    if (byte == '"' || byte == '\\') ++byte;
    if (byte > 0xF4) {
      if (depth == 0) break;
      --depth;
      continue;
    }
    next[depth] = byte + 1;
    const Term derived = terms->Derive(path[depth], static_cast<uint8_t>(byte));
    if (derived == kNothing) continue;
    if (terms->IsNullable(derived)) ++n;
    if (depth + 1 == kMaxBytes) continue;
    path[++depth] = derived;
    next[depth] = 0x20;
  }
  return n >= count;
}

}  // namespace arn::json_schema
