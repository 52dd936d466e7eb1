// Numbers: unrestricted ones in every spelling of RFC 8259, 6; the others as plain decimals, the
// shortest of each value where strings have one spelling. Exponents: number_automaton.h.
#include <algorithm>

#include "runtime/constrain/json_schema/formats.h"
#include "runtime/constrain/json_schema/scalars.h"
#include "runtime/constrain/json_schema/text_list.h"

namespace arn::json_schema {
namespace {

using Kind = NumberCondition::Kind;

struct Automaton {
  Span<const NumberState> states;
};

const NumberState& StateOf(const CustomArgs& args) {
  return FromWords<Automaton>(args.data.data())->states[args.data[2]];
}
bool IsNumberEnd(const Terms& terms, const CustomArgs& args) {
  (void)terms;
  return StateOf(args).is_end;
}
ByteSet FirstOfNumber(Terms* terms, const CustomArgs& args) {
  (void)terms;
  ByteSet set;
  for (uint32_t b = 0; b < 256; ++b) {
    const uint32_t symbol = NumberSymbol(static_cast<uint8_t>(b));
    if (symbol != kNoSymbol && StateOf(args).next[symbol] != kNoState) {
      set.Add(static_cast<uint8_t>(b));
    }
  }
  return set;
}
Term DeriveNumber(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same);
constexpr CustomOps kNumberOps = {IsNumberEnd, nullptr, FirstOfNumber, DeriveNumber, nullptr};

Term DeriveNumber(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same) {
  const NumberState& state = StateOf(args);
  const auto next = [&state](uint32_t b) {
    const uint32_t symbol = NumberSymbol(static_cast<uint8_t>(b));
    return symbol == kNoSymbol ? uint32_t{kNoState} : state.next[symbol];
  };
  const uint32_t target = next(byte);
  for (uint32_t b = 0; b < 256; ++b) {
    if (next(b) != target) same->Remove(static_cast<uint8_t>(b));
  }
  if (target == kNoState) return kNothing;
  const uint32_t data[] = {args.data[0], args.data[1], target};
  return terms->Custom(&kNumberOps, {}, data);
}

Term AnyNumber(Terms* terms) {
  const Term digit = terms->Bytes(ByteSet::Range('0', '9'));
  const Term digits = terms->Repeat(digit, 1, kUnbounded);
  ByteSet e, sign;
  e.Add('e');
  e.Add('E');
  sign.Add('+');
  sign.Add('-');
  const Term exponent =
      terms->Concat(terms->Bytes(e), terms->Concat(terms->Optional(terms->Bytes(sign)), digits));
  const Term integer = terms->Either(
      terms->Byte('0'),
      terms->Concat(terms->Bytes(ByteSet::Range('1', '9')), terms->Repeat(digit, 0, kUnbounded)));
  const Term fraction = terms->Concat(terms->Byte('.'), digits);
  return terms->Concat(
      terms->Optional(terms->Byte('-')),
      terms->Concat(integer, terms->Concat(terms->Optional(fraction), terms->Optional(exponent))));
}

// True if each value is spelled in one way.
bool IsShortest(const Context& context) { return context.style.form != TextForm::kJsonString; }

class NumberBuilder {
 public:
  explicit NumberBuilder(Context* context) : context_(*context) {}

  Status Run(Span<const Fact> facts, Scalars* out) {
    for (const Fact& fact : facts) ARN_TRY(Add(fact));
    if (has_none_) return Status::kOk;
    if (!is_finite_ && conditions_.empty()) {
      Add(AnyNumber(context_.terms), out);
      return Status::kOk;
    }
    Span<NumberState> states;
    if (!conditions_.empty()) {
      Merge();
      const Status status =
          BuildNumberAutomaton(conditions_.span(), IsShortest(context_), context_.arena, &states);
      if (status == Status::kUnsupported) {
        return context_.Refuse(where_,
                               "with what else is said of this number, deciding takes more than "
                               "20000 states or 16 conditions");
      }
      ARN_TRY(status);
    }
    if (is_finite_) return BuildList(states, out);
    if (states.empty()) return Status::kOk;
    ARN_ASSIGN(Span<Automaton> automaton, context_.arena->AllocateArray<Automaton>(1));
    automaton[0].states = states;
    const PointerWords words = ToWords(automaton.data());
    const uint32_t data[] = {words.words[0], words.words[1], 0};
    Add(context_.terms->Custom(&kNumberOps, {}, data), out);
    return Status::kOk;
  }

 private:
  void Add(Term term, Scalars* out) { out->others = context_.terms->Either(out->others, term); }

  Status Parse(StringView text, uint32_t where, Decimal* out) {
    const Status status = ParseDecimal(text, context_.arena, out);
    if (status != Status::kUnsupported) return status;
    return context_.Refuse(where, "a number with more than 1000 digits");
  }
  Status AddCondition(Kind kind, StringView text, uint32_t where) {
    NumberCondition condition;
    condition.kind = kind;
    ARN_TRY(Parse(text, where, &condition.value));
    where_ = where;
    return conditions_.Append(context_.arena, condition);
  }

  Status Add(const Fact& fact) {
    if (fact.kind == FactKind::kCompare) {
      return AddCondition(fact.condition, fact.text, fact.where);
    }
    if (fact.kind == FactKind::kInteger) {
      if (context_.references.draft() == Draft::k4 && !IsShortest(context_)) {
        return AddCondition(fact.is_denied ? Kind::kFraction : Kind::kNoFraction, "1", fact.where);
      }
      return AddCondition(fact.is_denied ? Kind::kNotMultiple : Kind::kMultiple, "1", fact.where);
    }
    if (fact.kind == FactKind::kNumberIn) return AddValues(fact);
    if (fact.kind == FactKind::kFormat) return AddFormat(fact);
    if (fact.kind != FactKind::kNumberIs) return Status::kOk;
    if (fact.is_denied) return AddCondition(Kind::kNotEqual, fact.text, fact.where);
    List<Decimal> values;
    Decimal value;
    ARN_TRY(Parse(fact.text, fact.where, &value));
    ARN_TRY(values.Append(context_.arena, value));
    return Intersect(values);
  }

  Status AddFormat(const Fact& fact) {
    NumberRange range;
    switch (FindFormat(fact.text, &range)) {
      case FormatKind::kUnknown: return context_.Refuse(fact.where, "this format is not supported");
      case FormatKind::kText:
      case FormatKind::kHint: has_none_ = has_none_ || fact.is_denied; return Status::kOk;
      case FormatKind::kIntegers: break;
    }
    if (fact.is_denied) return context_.Refuse(fact.where, "this format cannot be denied");
    ARN_TRY(AddCondition(Kind::kMultiple, "1", fact.where));
    ARN_TRY(AddCondition(Kind::kGreaterOrEqual, {range.min, std::strlen(range.min)}, fact.where));
    return AddCondition(Kind::kLessOrEqual, {range.max, std::strlen(range.max)}, fact.where);
  }

  Status AddValues(const Fact& fact) {
    List<Decimal> values;
    const Document& document = context_.document;
    for (uint32_t m = document[fact.where].first; m != kNone; m = document[m].next) {
      if (document[m].kind != JsonKind::kNumber) continue;
      ARN_TRY(context_.Spend(4));
      if (fact.is_denied) {
        ARN_TRY(AddCondition(Kind::kNotEqual, document[m].text, m));
        continue;
      }
      Decimal value;
      ARN_TRY(Parse(document[m].text, m, &value));
      ARN_TRY(values.Append(context_.arena, value));
    }
    return fact.is_denied ? Status::kOk : Intersect(values);
  }

  Status Intersect(List<Decimal> values) {
    const auto is_less = [](const Decimal& a, const Decimal& b) { return Compare(a, b) < 0; };
    std::sort(values.begin(), values.end(), is_less);
    if (!is_finite_) {
      is_finite_ = true;
      values_ = values;
      return Status::kOk;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < values_.size(); ++i) {
      if (std::binary_search(values.begin(), values.end(), values_[i], is_less)) {
        values_[n++] = values_[i];
      }
    }
    values_.Truncate(n);
    return Status::kOk;
  }

  // Keeps the tightest of all lower and of all upper bounds, and each other condition once.
  void Merge() {
    uint32_t n = 0;
    for (uint32_t i = 0; i < conditions_.size(); ++i) {
      const NumberCondition next = conditions_[i];
      bool is_merged = false;
      for (uint32_t k = 0; k < n && !is_merged; ++k) {
        NumberCondition& kept = conditions_[k];
        const int order = Compare(next.value, kept.value);
        const bool are_lower = IsLower(next.kind) && IsLower(kept.kind);
        const bool are_upper = IsUpper(next.kind) && IsUpper(kept.kind);
        is_merged = are_lower || are_upper || (next.kind == kept.kind && order == 0);
        const bool is_strict = next.kind == Kind::kGreater || next.kind == Kind::kLess;
        if ((are_lower && order > 0) || (are_upper && order < 0) ||
            ((are_lower || are_upper) && order == 0 && is_strict)) {
          kept = next;
        }
      }
      if (!is_merged) conditions_[n++] = next;
    }
    conditions_.Truncate(n);
  }
  static bool IsLower(Kind kind) { return kind == Kind::kGreater || kind == Kind::kGreaterOrEqual; }
  static bool IsUpper(Kind kind) { return kind == Kind::kLess || kind == Kind::kLessOrEqual; }

  Status BuildList(Span<const NumberState> states, Scalars* out) {
    for (const Decimal& value : values_) {
      StringView text;
      ARN_TRY(PlainText(value, context_.arena, &text));
      if (!conditions_.empty() && !Matches(states, text)) continue;
      ARN_TRY(out->texts.Append(context_.arena, text));
      if (value.is_zero() && !IsShortest(context_))
        ARN_TRY(out->texts.Append(context_.arena, StringView("-0")));
    }
    return Status::kOk;
  }

  Context& context_;
  List<NumberCondition> conditions_;
  List<Decimal> values_;
  bool is_finite_ = false;  // only values_
  bool has_none_ = false;
  uint32_t where_ = 0;
};

}  // namespace

Status AddNumbers(Context* context, Span<const Fact> facts, Scalars* out) {
  return NumberBuilder(context).Run(facts, out);
}

Status NumberTerm(Context* context, Scalars* scalars, Term* out) {
  SortTexts(&scalars->texts);
  ARN_ASSIGN(Span<TextList> list, context->arena->AllocateArray<TextList>(1));
  list[0].strings = context->strings;
  list[0].texts = scalars->texts.span();
  const Term listed = IsShortest(*context) ? TextListTerm(context->terms, list.data())
                                           : NumberListTerm(context->terms, list.data());
  *out = context->terms->Either(scalars->others, listed);
  return Status::kOk;
}

}  // namespace arn::json_schema
