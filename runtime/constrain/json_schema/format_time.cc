// Times of RFC 3339 with their leap seconds.
#include "runtime/constrain/code_points.h"
#include "runtime/constrain/json_schema/formats.h"

namespace arn::json_schema {
namespace {

// Times in the leap second, 23:59:60 in UTC (RFC 3339, 5.6, 5.7 and appendix D).
//
// The local time determines the offset: its hour and its minute almost independently. So one term
// relates the hours and another the minutes, and the times are those of both.
class LeapSecond {
 public:
  explicit LeapSecond(Context* context) : strings_(context->strings), terms_(context->terms) {}

  Term Build() {
    const Term zero = Seconds(terms_->Either(Character('Z'), Character('z')));
    const Term utc = terms_->Concat(
        Number(23), terms_->Concat(Character(':'), terms_->Concat(Number(59), zero)));
    const Term no_minutes = terms_->Concat(
        AnyTwo(), terms_->Concat(Character(':'),
                                 terms_->Concat(Number(59), Offset('+', AnyTwo(), Number(0)))));
    const Term alternatives[] = {
        utc,
        // West of Greenwich: 23:59 minus the offset.
        terms_->Both(Hours('-', 23, -1), Minutes('-', 0, 59, -1)),
        // East, by full hours: minute 59 of an earlier hour of the next day.
        terms_->Both(Hours('+', 23, 1), no_minutes),
        // East, by hours and minutes: the hour of the offset, and a minute less.
        terms_->Both(Hours('+', 0, 1), Minutes('+', 1, 59, 1)),
    };
    return terms_->Either(alternatives);
  }

 private:
  Term Character(char c) const { return strings_.Character(static_cast<uint32_t>(c)); }
  Term Number(uint32_t value) const {
    return terms_->Concat(Character(static_cast<char>('0' + value / 10)),
                          Character(static_cast<char>('0' + value % 10)));
  }
  Term Digit() const {
    const CodePointRange digits[] = {{'0', '9'}};
    return CharacterTerm(terms_, digits, TextForm::kJsonString);
  }
  Term AnyTwo() const { return terms_->Concat(Digit(), Digit()); }
  // ":60", a fraction, and what follows.
  Term Seconds(Term rest) const {
    const Term fraction = terms_->Concat(Character('.'), terms_->Repeat(Digit(), 1, kUnbounded));
    return terms_->Concat(
        Character(':'),
        terms_->Concat(Number(60), terms_->Concat(terms_->Optional(fraction), rest)));
  }
  Term Offset(char sign, Term hours, Term minutes) const {
    return Seconds(terms_->Concat(Character(sign),
                                  terms_->Concat(hours, terms_->Concat(Character(':'), minutes))));
  }
  // Local hour base + direction * the offset's, for each of those.
  Term Hours(char sign, uint32_t base, int direction) const {
    Term alternatives[24];
    const Term any = AnyTwo(), colon = Character(':');
    for (uint32_t v = 0; v < 24; ++v) {
      const uint32_t local = (direction > 0 ? base + v : base + 24 - v) % 24;
      alternatives[v] = terms_->Concat(
          Number(local), terms_->Concat(colon, terms_->Concat(any, Offset(sign, Number(v), any))));
    }
    return terms_->Either(alternatives);
  }
  // As Hours, for minutes from `first` on.
  Term Minutes(char sign, uint32_t first, uint32_t base, int direction) const {
    Term alternatives[60];
    const Term any = AnyTwo(), colon = Character(':');
    for (uint32_t v = first; v < 60; ++v) {
      const uint32_t local = (direction > 0 ? base + v : base + 60 - v) % 60;
      alternatives[v - first] = terms_->Concat(
          any, terms_->Concat(colon, terms_->Concat(Number(local), Offset(sign, any, Number(v)))));
    }
    return terms_->Either({alternatives, 60 - first});
  }

  const StringTerms& strings_;
  Terms* const terms_;
};

}  // namespace

Term LeapSecondTerm(Context* context) { return LeapSecond(context).Build(); }

}  // namespace arn::json_schema
