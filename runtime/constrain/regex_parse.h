// Regular expressions as terms: ECMA-262 with its flag u, as JSON schema's `pattern`.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/code_points.h"
#include "runtime/constrain/terms.h"

namespace arn {

struct RegexOptions {
  // True: a match somewhere in the text is enough. False: the whole text must match.
  bool search = false;
  TextForm form = TextForm::kUtf8;
};

// Parses `pattern`, UTF-8, into the term of the texts that it matches (kNothing if there are none).
//
// Understood: . | ( ) (?: ) (?<name> ) * + ? {n} {n,} {n,m}, each also lazy, which matches the same
// texts; ^ and $, for the whole text; classes with ranges, negated ones; \d \w \s (ASCII digits and
// word characters, ECMA-262's white space) and their negations; \p{L}, \p{gc=Lu}, \P{...} with
// general categories, Any, ASCII and Assigned; \t \n \v \f \r \0 \cX \xHH \uHHHH (with pairs)
// \u{H}; and any other character that is not a letter or digit after '\'. As browsers do without
// the flag u, takes a { that begins no count, ] and } for themselves.
//
// Refused, by offset: look-around, back references, \b and \B, other properties (scripts), flags
// in groups, anchors inside a repetition.
Status ParseRegex(Terms* terms, StringView pattern, const RegexOptions& options, Term* out,
                  Diag* diag);

}  // namespace arn
