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
