// The numbers between two bounds, multiples of something, without some values, as an automaton over
// their spellings: -?(0|[1-9][0-9]*)(\.[0-9]+)?, and where every spelling is allowed also
// -?[1-9](\.[0-9]+)?[eE][+-]?[0-9]+. With multiples the mantissa of the latter has at most
// MantissaDigits::kMax digits behind the point and then zeros; and there is none if a divisor has
// many digits, or the states were many, or integers are those spelled without a fraction.
//
// Each condition alone is a small automaton: a bound compares digit by digit, a multiple keeps the
// remainder (number_multiple.h). (Other exponents would need a counter: in 0.00...01e5 it is the
// zeros that count.) The states are those of all conditions together that can be reached and from
// which a number that satisfies all of them can be reached.
#pragma once

#include "runtime/constrain/json_schema/decimal.h"

namespace arn::json_schema {

struct NumberCondition {
  enum class Kind : uint8_t {
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kNotEqual,
    kMultiple,
    kNotMultiple,
    kNoFraction,  // spelled without one: an integer of draft 4
    kFraction
  };
  Kind kind;
  Decimal value;  // positive for kMultiple and kNotMultiple; kNoFraction, kFraction: ignored
};

inline constexpr uint32_t kNumberSymbols = 14;
inline constexpr uint32_t kNoSymbol = UINT32_MAX;
// Returns the number of a character: 0 to 9, '.', '-', '+', 'e' or 'E'.
constexpr uint32_t NumberSymbol(uint8_t character) {
  switch (character) {
    case '.': return 10;
    case '-': return 11;
    case '+': return 12;
    case 'e':
    case 'E': return 13;
    default: return character >= '0' && character <= '9' ? character - uint32_t{'0'} : kNoSymbol;
  }
}

struct NumberState {
  bool is_end = false;            // the number may end here
  uint16_t next[kNumberSymbols];  // kNoState: not allowed
};
inline constexpr uint16_t kNoState = UINT16_MAX;
inline constexpr uint32_t kMaxNumberConditions = 16;
inline constexpr uint32_t kMaxNumberStates = 20'000;

// *out is empty if no number satisfies the conditions; otherwise the first state is the start.
// kUnsupported: more conditions or states than the limits. Scratch and result are in `arena`.
// is_shortest: no fraction ends with 0, so that integers have none, and there are no -0 and no
// exponents.
Status BuildNumberAutomaton(Span<const NumberCondition> conditions, bool is_shortest, Arena* arena,
                            Span<NumberState>* out);

// Returns whether the automaton accepts a plain spelling.
bool Matches(Span<const NumberState> states, StringView text);

}  // namespace arn::json_schema
