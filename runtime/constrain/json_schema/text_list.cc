#include "runtime/constrain/json_schema/text_list.h"

namespace arn::json_schema {
namespace {

// Data of the custom terms below: the list, then the range.
constexpr uint32_t kDataWords = 5;
// Different next characters of a range. More are split into several terms.
constexpr uint32_t kMaxCharacters = 128;

struct Data {
  uint32_t words[kDataWords];
};
Data Pack(const TextList* list, const TextRange& range) {
  const PointerWords pointer = ToWords(list);
  return {{pointer.words[0], pointer.words[1], range.first, range.end, range.position}};
}
const TextList& ListOf(const CustomArgs& args) { return *FromWords<TextList>(args.data.data()); }
TextRange RangeOf(const CustomArgs& args) { return {args.data[2], args.data[3], args.data[4]}; }

bool HasEnd(const Terms& terms, const CustomArgs& args) {
  (void)terms;
  const TextRange range = RangeOf(args);
  return ListOf(args).texts[range.first].size == range.position;
}
bool HasNoEnd(const Terms& terms, const CustomArgs& args) { return !HasEnd(terms, args); }
bool HasNumberEnd(const Terms& terms, const CustomArgs& args) { return HasEnd(terms, args); }

Term ExpandTexts(Terms* terms, const CustomArgs& args);
Term ExpandOthers(Terms* terms, const CustomArgs& args);
Term ExpandNumbers(Terms* terms, const CustomArgs& args);
constexpr CustomOps kTexts = {HasEnd, ExpandTexts, nullptr, nullptr, nullptr};
constexpr CustomOps kOthers = {HasNoEnd, ExpandOthers, nullptr, nullptr, nullptr};
constexpr CustomOps kNumbers = {HasNumberEnd, ExpandNumbers, nullptr, nullptr, nullptr};

// REQUIRES: the range is not empty.
Term Make(Terms* terms, const CustomOps* ops, const TextList* list, const TextRange& range) {
  const Data data = Pack(list, range);
  // The terms that ExpandOthers() makes use of must stay.
  const Term kept[] = {list->strings.any_character(), list->strings.any_content()};
  return terms->Custom(ops, {kept, ops == &kOthers ? size_t{2} : size_t{0}},
                       {data.words, kDataWords});
}

// The texts of a range, without the bytes they have in common.
Term ExpandTexts(Terms* terms, const CustomArgs& args) {
  const TextList& list = ListOf(args);
  TextRange range = RangeOf(args);
  Term result = TakeEnd(list.texts, &range) ? kEmpty : kNothing;
  while (range.first < range.end) {
    Term alternatives[kMaxCharacters + 1];
    uint32_t n = 0;
    alternatives[n++] = result;
    while (range.first < range.end && n <= kMaxCharacters) {
      uint32_t code_point = 0;
      const TextRange next = TakeCharacter(list.texts, &range, &code_point);
      alternatives[n++] =
          terms->Concat(list.strings.Character(code_point), Make(terms, &kTexts, &list, next));
    }
    result = terms->Either({alternatives, n});
  }
  return result;
}

Term ExpandOthers(Terms* terms, const CustomArgs& args) {
  const TextList& list = ListOf(args);
  TextRange range = RangeOf(args);
  Term result = TakeEnd(list.texts, &range) ? kNothing : kEmpty;
  Term known = kNothing;
  while (range.first < range.end) {
    Term alternatives[kMaxCharacters + 1], characters[kMaxCharacters + 1];
    uint32_t n = 0;
    characters[n] = known;
    alternatives[n++] = result;
    while (range.first < range.end && n <= kMaxCharacters) {
      uint32_t code_point = 0;
      const TextRange next = TakeCharacter(list.texts, &range, &code_point);
      characters[n] = list.strings.Character(code_point);
      alternatives[n] = terms->Concat(characters[n], Make(terms, &kOthers, &list, next));
      ++n;
    }
    known = terms->Either({characters, n});
    result = terms->Either({alternatives, n});
  }
  const Term any = list.strings.any_character();
  const Term other = known == kNothing ? any : terms->Without(any, known);
  return terms->Either(result, terms->Concat(other, list.strings.any_content()));
}

Term ExpandNumbers(Terms* terms, const CustomArgs& args) {
  const TextList& list = ListOf(args);
  TextRange range = RangeOf(args);
  Term alternatives[16];
  uint32_t n = 0;
  if (list.texts[range.first].size == range.position) {
    const StringView text = list.texts[range.first];
    bool has_point = false;
    for (size_t i = 0; i < text.size; ++i) has_point = has_point || text.data[i] == '.';
    const Term zero = terms->Byte('0');
    alternatives[n++] =
        has_point
            ? terms->Repeat(zero, 0, kUnbounded)
            : terms->Optional(terms->Concat(terms->Byte('.'), terms->Repeat(zero, 1, kUnbounded)));
    TakeEnd(list.texts, &range);
  }
  while (range.first < range.end) {  // at most a digit, a point or a minus sign
    uint32_t code_point = 0;
    const TextRange next = TakeCharacter(list.texts, &range, &code_point);
    alternatives[n++] = terms->Concat(terms->Byte(static_cast<uint8_t>(code_point)),
                                      Make(terms, &kNumbers, &list, next));
  }
  return terms->Either({alternatives, n});
}

TextRange All(const TextList* list) { return {0, static_cast<uint32_t>(list->texts.size()), 0}; }

}  // namespace

Term TextListTerm(Terms* terms, const TextList* list) {
  return list->texts.empty() ? kNothing : Make(terms, &kTexts, list, All(list));
}

Term OtherTextTerm(Terms* terms, const TextList* list) {
  return Make(terms, &kOthers, list, All(list));
}

Term NumberListTerm(Terms* terms, const TextList* list) {
  return list->texts.empty() ? kNothing : Make(terms, &kNumbers, list, All(list));
}

}  // namespace arn::json_schema
