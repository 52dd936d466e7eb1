#include "runtime/constrain/json_schema/strings.h"

#include "runtime/text/utf8.h"

namespace arn::json_schema {
namespace {

constexpr char kShortEscapes[] = "\"\\/bfnrt";
constexpr char kShortMeanings[] = "\"\\/\b\f\n\r\t";

ByteSet SetOf(const char* bytes) {
  ByteSet set;
  for (; *bytes != '\0'; ++bytes) set.Add(static_cast<uint8_t>(*bytes));
  return set;
}

ByteSet HexDigit(uint32_t digit) {
  ByteSet set;
  set.Add(static_cast<uint8_t>("0123456789abcdef"[digit]));
  set.Add(static_cast<uint8_t>("0123456789ABCDEF"[digit]));
  return set;
}

}  // namespace

void StringTerms::Init(Terms* terms) {
  terms_ = terms;
  const auto bytes = [terms](uint8_t first, uint8_t last) {
    return terms->Bytes(ByteSet::Range(first, last));
  };
  const Term tail = bytes(0x80, 0xBF);
  const Term two_tails = terms->Concat(tail, tail);
  const Term hex = terms->Bytes(SetOf("0123456789abcdefABCDEF"));
  const Term two_hex = terms->Concat(hex, hex);
  const Term high = terms->Concat(terms->Bytes(SetOf("dD")),
                                  terms->Concat(terms->Bytes(SetOf("89abAB")), two_hex));
  const Term low = terms->Concat(terms->Bytes(SetOf("dD")),
                                 terms->Concat(terms->Bytes(SetOf("cdefCDEF")), two_hex));
  const Term units[] = {
      terms->Concat(terms->Bytes(SetOf("0123456789abcefABCEF")), terms->Concat(hex, two_hex)),
      terms->Concat(terms->Bytes(SetOf("dD")),
                    terms->Concat(terms->Bytes(SetOf("01234567")), two_hex)),
      terms->Concat(high, terms->Concat(terms->Literal("\\u"), low)),
  };
  const Term escape = terms->Either(terms->Bytes(SetOf(kShortEscapes)),
                                    terms->Concat(terms->Byte('u'), terms->Either(units)));
  ByteSet plain = ByteSet::Range(0x20, 0x7F);
  plain.Remove('"');
  plain.Remove('\\');
  const Term alternatives[] = {
      terms->Bytes(plain),
      terms->Concat(terms->Byte('\\'), escape),
      terms->Concat(bytes(0xC2, 0xDF), tail),
      terms->Concat(bytes(0xE0, 0xE0), terms->Concat(bytes(0xA0, 0xBF), tail)),
      terms->Concat(bytes(0xE1, 0xEC), two_tails),
      terms->Concat(bytes(0xED, 0xED), terms->Concat(bytes(0x80, 0x9F), tail)),
      terms->Concat(bytes(0xEE, 0xEF), two_tails),
      terms->Concat(bytes(0xF0, 0xF0), terms->Concat(bytes(0x90, 0xBF), two_tails)),
      terms->Concat(bytes(0xF1, 0xF3), terms->Concat(tail, two_tails)),
      terms->Concat(bytes(0xF4, 0xF4), terms->Concat(bytes(0x80, 0x8F), two_tails)),
  };
  any_character_ = terms->Either(alternatives);
  any_content_ = terms->Repeat(any_character_, 0, kUnbounded);
}

Term StringTerms::HexDigits(uint32_t value) const {
  Term term = kEmpty;
  for (uint32_t i = 0; i < 4; ++i) {
    term = terms_->Concat(terms_->Bytes(HexDigit(value >> (4 * i) & 15)), term);
  }
  return terms_->Concat(terms_->Byte('u'), term);
}

Term StringTerms::Character(uint32_t code_point) const {
  Term escape = kNothing;
  if (code_point < 0x10000) {
    escape = HexDigits(code_point);
  } else {
    const uint32_t rest = code_point - 0x10000;
    escape = terms_->Concat(
        HexDigits(0xD800 | rest >> 10),
        terms_->Concat(terms_->Byte('\\'), HexDigits(0xDC00 | (rest & 0x3FF))));
  }
  for (uint32_t i = 0; kShortEscapes[i] != '\0'; ++i) {
    if (static_cast<uint32_t>(kShortMeanings[i]) != code_point) continue;
    escape = terms_->Either(escape, terms_->Byte(static_cast<uint8_t>(kShortEscapes[i])));
  }
  escape = terms_->Concat(terms_->Byte('\\'), escape);
  if (code_point < 0x20 || code_point == '"' || code_point == '\\') return escape;
  char utf8[4];
  const size_t n = WriteUtf8(code_point, utf8);
  return terms_->Either(escape, terms_->Literal({utf8, n}));
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
