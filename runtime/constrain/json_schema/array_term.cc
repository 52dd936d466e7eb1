#include <algorithm>

#include "runtime/constrain/json_schema/text_list.h"
#include "runtime/constrain/json_schema/value_terms.h"

namespace arn::json_schema {
namespace {

// Data: the part, then items so far and those that counted, or items so far and the set of
// constants that came.
struct ArrayPart {
  const ArrayShape* shape;
  const TermTable* table;
};
constexpr uint32_t kMaxSetWords = 128;

bool IsNotEmpty(const Terms& terms, const CustomArgs& args) {
  (void)terms;
  (void)args;
  return false;
}

Term ExpandItems(Terms* terms, const CustomArgs& args);
Term ExpandUnique(Terms* terms, const CustomArgs& args);
constexpr CustomOps kItems = {IsNotEmpty, ExpandItems, nullptr, nullptr, nullptr};
constexpr CustomOps kUnique = {IsNotEmpty, ExpandUnique, nullptr, nullptr, nullptr};

// Puts what comes before an item in front of it.
Term Separated(Terms* terms, const Style& style, bool is_first, Term item) {
  if (is_first || item == kNothing) return item;
  return terms->Concat(style.comma, item);
}

Term ExpandItems(Terms* terms, const CustomArgs& args) {
  const ArrayPart& part = *FromWords<ArrayPart>(args.data.data());
  const ArrayShape& shape = *part.shape;
  const Style& style = part.table->style;
  const uint64_t n = args.data[2], counted = args.data[3];
  const ItemNodes& item = shape.items[std::min<uint64_t>(n, shape.items.size() - 1)];
  // Numbers that mean nothing more stay where they are, so that the state is the same again.
  uint64_t next = n + 1;
  if (shape.max == UINT64_MAX) {
    next = std::min<uint64_t>(next, std::max<uint64_t>({shape.min, shape.items.size() - 1, 1}));
  }
  Term alternatives[3];
  uint32_t n_alternatives = 0;
  for (const bool counts : {true, false}) {
    if (!(counts ? item.can_count : item.can_be_other)) continue;
    uint64_t next_counted = counted + (counts ? 1 : 0);
    if (shape.max_counted == UINT64_MAX) next_counted = std::min(next_counted, shape.min_counted);
    if (!CanFinish(shape, next, next_counted)) continue;
    const uint32_t data[] = {args.data[0], args.data[1], static_cast<uint32_t>(next),
                             static_cast<uint32_t>(next_counted)};
    const Term rest = terms->Concat(style.space, terms->Custom(&kItems, args.terms, data));
    const Term rule = part.table->values[counts ? item.counted : item.other];
    alternatives[n_alternatives++] = terms->Concat(rule, rest);
  }
  const Term items = Separated(terms, style, n == 0, terms->Either({alternatives, n_alternatives}));
  const bool is_end = n >= shape.min && counted >= shape.min_counted;
  return is_end ? terms->Either(terms->Byte(']'), items) : items;
}

Term ExpandUnique(Terms* terms, const CustomArgs& args) {
  const ArrayPart& part = *FromWords<ArrayPart>(args.data.data());
  const ArrayShape& shape = *part.shape;
  const Style& style = part.table->style;
  const uint32_t n = args.data[2];
  const uint32_t n_words = static_cast<uint32_t>(args.data.size());
  uint32_t data[kMaxSetWords + 3];
  std::copy(args.data.begin(), args.data.end(), data);
  data[2] = n + 1;
  Term items = kNothing;
  Term alternatives[64];
  uint32_t n_alternatives = 0;
  const bool may_come = CanFinish(shape, uint64_t{n} + 1, 0);
  for (uint32_t i = 0; i < shape.choices.size() && may_come; ++i) {
    uint32_t* const word = &data[3 + i / 32];
    const uint32_t bit = 1u << (i % 32);
    if (!shape.can_choose[i] || (*word & bit) != 0) continue;
    *word |= bit;
    const Term rest =
        terms->Concat(style.space, terms->Custom(&kUnique, args.terms, {data, n_words}));
    *word &= ~bit;
    const Term rule = part.table->values[shape.choices[i]];
    alternatives[n_alternatives++] = terms->Concat(rule, rest);
    if (n_alternatives == 63) {
      alternatives[n_alternatives++] = items;
      items = terms->Either({alternatives, n_alternatives});
      n_alternatives = 0;
    }
  }
  alternatives[n_alternatives++] = items;
  items = Separated(terms, style, n == 0, terms->Either({alternatives, n_alternatives}));
  return n >= shape.min ? terms->Either(terms->Byte(']'), items) : items;
}

}  // namespace

Term ArrayTerm(Terms* terms, Arena* arena, const ArrayShape* shape, const TermTable* table) {
  Result<Span<ArrayPart>> part = arena->AllocateArray<ArrayPart>(1);
  if (!part.ok()) return kNothing;
  part.value()[0] = {shape, table};
  const PointerWords pointer = ToWords(part.value().data());
  uint32_t data[kMaxSetWords + 3] = {pointer.words[0], pointer.words[1]};
  const Term kept[] = {table->rules};
  const uint32_t n_set = static_cast<uint32_t>((shape->choices.size() + 31) / 32);
  if (n_set != 0) return terms->Custom(&kUnique, kept, {data, 3 + n_set});
  return terms->Custom(&kItems, kept, {data, 4});
}

}  // namespace arn::json_schema
