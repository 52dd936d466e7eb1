#include "runtime/constrain/json_schema/style.h"

namespace arn::json_schema {

Style JsonStyle(Terms* terms, TextForm form, Term space, Term after_comma, Term after_colon) {
  const auto byte = [terms](char c) { return terms->Byte(static_cast<uint8_t>(c)); };
  Style style;
  style.form = form;
  style.space = space;
  style.comma = terms->Concat(byte(','), after_comma);
  style.quote = byte('"');
  style.null_value = terms->Literal("null");
  style.false_value = terms->Literal("false");
  style.true_value = terms->Literal("true");
  style.object.open = terms->Concat(byte('{'), space);
  style.object.name_begin = style.quote;
  const Term colon = terms->Concat(byte(':'), after_colon);
  style.object.name_end = terms->Concat(style.quote, terms->Concat(space, colon));
  style.object.value_end = space;
  style.object.comma = style.comma;
  style.object.close = byte('}');
  return style;
}

Term WithoutMark(Terms* terms, StringView mark, bool skips_space) {
  const Term space = terms->Repeat(terms->Bytes(ByteSet::Spaces()), 0, kUnbounded);
  Term with = terms->AnyBytes();
  for (size_t i = mark.size; i-- > 0;) {
    const auto byte = static_cast<uint8_t>(mark.data[i]);
    if (skips_space && ByteSet::Spaces().Has(byte)) continue;
    if (skips_space && with != terms->AnyBytes()) with = terms->Concat(space, with);
    with = terms->Concat(terms->Byte(byte), with);
  }
  return terms->Complement(terms->Concat(terms->AnyBytes(), with));
}

}  // namespace arn::json_schema
