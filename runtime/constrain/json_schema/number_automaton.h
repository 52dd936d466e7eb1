// The numbers between two bounds, multiples of something, without some values, as an automaton over
// their plain decimal spellings: -?(0|[1-9][0-9]*)(\.[0-9]+)?
//
// Each condition alone is a small automaton: a bound compares digit by digit, a multiple keeps the
// remainder. The states are those of all conditions together that can be reached and from which a
// number that satisfies all of them can be reached.
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

struct NumberState {
  bool is_end = false;  // the number may end here
  // By symbol: 0 to 9, '.', '-'. kNoState: not allowed.
  uint32_t next[12];
};
inline constexpr uint32_t kNoState = UINT32_MAX;
inline constexpr uint32_t kMaxNumberConditions = 16;
inline constexpr uint32_t kMaxNumberStates = 20'000;

// *out is empty if no number satisfies the conditions; otherwise the first state is the start.
// kUnsupported: more conditions or states than the limits. Scratch and result are in `arena`.
// is_shortest: no fraction ends with 0, so that integers have none, and there is no -0.
Status BuildNumberAutomaton(Span<const NumberCondition> conditions, bool is_shortest, Arena* arena,
                            Span<NumberState>* out);

// Returns whether the automaton accepts a plain spelling.
bool Matches(Span<const NumberState> states, StringView text);

}  // namespace arn::json_schema
