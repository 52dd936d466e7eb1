// Arrays of unique strings. The text of each string is captured as it is read, and taken out of the
// language of those that may follow.
#include <algorithm>

#include "runtime/constrain/json_schema/captured_text.h"
#include "runtime/constrain/json_schema/text_list.h"
#include "runtime/constrain/json_schema/value_terms.h"

namespace arn::json_schema {
namespace {

struct UniquePart {
  const ArrayShape* shape;
  const TermTable* table;
  StringTerms strings;
};

// Terms of the custom terms: what to keep, contents that may come, and the rest of the content that
// is being read. Data: the part, items so far, and the text.
enum Place : uint32_t { kKept, kContent, kRest };
constexpr uint32_t kItemCount = 2, kDataWords = 3;

bool IsNotEmpty(const Terms& terms, const CustomArgs& args) {
  (void)terms;
  (void)args;
  return false;
}
Term ExpandUniqueTexts(Terms* terms, const CustomArgs& args);
ByteSet FirstOfText(Terms* terms, const CustomArgs& args);
Term DeriveText(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same);
constexpr CustomOps kItems = {IsNotEmpty, ExpandUniqueTexts, nullptr, nullptr, nullptr};
constexpr CustomOps kText = {IsNotEmpty, nullptr, FirstOfText, DeriveText, nullptr};

Term ExpandUniqueTexts(Terms* terms, const CustomArgs& args) {
  const UniquePart& part = *FromWords<UniquePart>(args.data.data());
  const Style& style = part.table->style;
  const uint32_t n = args.data[kItemCount];
  const Term end = n >= part.shape->min ? terms->Byte(']') : kNothing;
  if (n >= part.shape->max || args.terms[kContent] == kNothing) return end;
  const Term text_terms[] = {args.terms[kKept], args.terms[kContent], args.terms[kContent]};
  uint32_t data[kDataWords + CapturedText::kStateWords] = {args.data[0], args.data[1], n};
  Term items = terms->Concat(terms->Byte('"'), terms->Custom(&kText, text_terms, data));
  if (n != 0) items = terms->Concat(style.comma, items);
  return terms->Either(end, items);
}

ByteSet FirstOfText(Terms* terms, const CustomArgs& args) {
  ByteSet first = terms->FirstBytes(args.terms[kRest]);
  if (terms->IsNullable(args.terms[kRest])) first.Add('"');
  return first;
}

Term DeriveText(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same) {
  *same &= ByteSet::Of(byte);
  const UniquePart& part = *FromWords<UniquePart>(args.data.data());
  uint32_t data[kDataWords + CapturedText::kMaxWords];
  std::copy(args.data.begin(), args.data.end(), data);
  CapturedText text(data + kDataWords);
  if (byte == '"' && text.IsBetween()) {
    if (!terms->IsNullable(args.terms[kRest])) return kNothing;
    const Term content = terms->Without(args.terms[kContent], part.strings.Text(text.text()));
    const Term next[] = {args.terms[kKept], content};
    // A count that means nothing more stays where it is.
    const uint64_t n = uint64_t{data[kItemCount]} + 1;
    const bool counts = part.shape->max != UINT64_MAX;
    data[kItemCount] =
        static_cast<uint32_t>(counts ? n : std::min(n, std::max<uint64_t>(part.shape->min, 1)));
    return terms->Concat(part.table->style.space, terms->Custom(&kItems, next, {data, kDataWords}));
  }
  const Term rest = terms->Derive(args.terms[kRest], byte);
  if (rest == kNothing) return kNothing;
  text.Add(byte);
  const Term next[] = {args.terms[kKept], args.terms[kContent], rest};
  return terms->Custom(&kText, next, {data, kDataWords + text.n_words()});
}

}  // namespace

Term UniqueTextsTerm(Terms* terms, Arena* arena, const StringTerms& strings,
                     const ArrayShape* shape, const TermTable* table) {
  Result<Span<UniquePart>> part = arena->AllocateArray<UniquePart>(1);
  if (!part.ok()) return kNothing;
  part.value()[0] = {shape, table, strings};
  const PointerWords pointer = ToWords(part.value().data());
  const Term own[] = {table->rules, shape->unique_content};
  const uint32_t data[kDataWords] = {pointer.words[0], pointer.words[1], 0};
  return terms->Custom(&kItems, own, data);
}

}  // namespace arn::json_schema
