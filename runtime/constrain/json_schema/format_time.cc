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
  explicit LeapSecond(Context* context) : strings_(context->strings), terms_(context->terms) {
    for (uint32_t v = 0; v < 10; ++v) digits_[v] = Character(static_cast<char>('0' + v));
    const CodePointRange range[] = {{'0', '9'}};
    digit_ = CharacterTerm(terms_, range, strings_.form());
    colon_ = Character(':');
    const Term fraction = terms_->Concat(Character('.'), terms_->Repeat(digit_, 1, kUnbounded));
    leap_ = terms_->Concat(colon_, terms_->Concat(Number(60), terms_->Optional(fraction)));
  }

  Term Build() {
    const Term zero = Seconds(terms_->Either(Character('Z'), Character('z')));
    const Term utc =
        terms_->Concat(Number(23), terms_->Concat(colon_, terms_->Concat(Number(59), zero)));
    const Term no_minutes = terms_->Concat(
        AnyTwo(), terms_->Concat(colon_, terms_->Concat(Number(59), Offset(Character('+'), AnyTwo(),
                                                                           Number(0)))));
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
    return terms_->Concat(digits_[value / 10], digits_[value % 10]);
  }
  Term AnyTwo() const { return terms_->Concat(digit_, digit_); }
  // Returns ":60", a fraction, and `rest`.
  Term Seconds(Term rest) const { return terms_->Concat(leap_, rest); }
  Term Offset(Term sign, Term hours, Term minutes) const {
    return Seconds(terms_->Concat(sign, terms_->Concat(hours, terms_->Concat(colon_, minutes))));
  }
  // Returns times with local hour base + direction * the offset's, for each of those.
  Term Hours(char sign, uint32_t base, int direction) const {
    Term alternatives[24];
    const Term any = AnyTwo(), begin = Character(sign);
    for (uint32_t v = 0; v < 24; ++v) {
      const uint32_t local = (direction > 0 ? base + v : base + 24 - v) % 24;
      alternatives[v] = terms_->Concat(
          Number(local),
          terms_->Concat(colon_, terms_->Concat(any, Offset(begin, Number(v), any))));
    }
    return terms_->Either(alternatives);
  }
  // Does as Hours, for minutes from `first` on.
  Term Minutes(char sign, uint32_t first, uint32_t base, int direction) const {
    Term alternatives[60];
    const Term any = AnyTwo(), begin = Character(sign);
    for (uint32_t v = first; v < 60; ++v) {
      const uint32_t local = (direction > 0 ? base + v : base + 60 - v) % 60;
      alternatives[v - first] = terms_->Concat(
          any,
          terms_->Concat(colon_, terms_->Concat(Number(local), Offset(begin, any, Number(v)))));
    }
    return terms_->Either({alternatives, 60 - first});
  }

  const StringTerms& strings_;
  Terms* const terms_;
  Term digits_[10];
  Term digit_, colon_, leap_;
};

}  // namespace

Term LeapSecondTerm(Context* context) { return LeapSecond(context).Build(); }

}  // namespace arn::json_schema
