// Grammars in GBNF, the BNF of ggml, as terms.
#pragma once

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/terms.h"

namespace arn {

// The term of the rule "root" of a grammar, for Terms::Resolve(), which refuses undefined rules and
// left recursion through other rules. Names in `grammar` must live until then.
//
// A rule is `name ::= alternatives`; alternatives are separated by |. Elements: "literal", [class],
// [^class], . (any character), names, ( ) for groups; after an element * + ? {n} {n,} {n,m} or
// {,m}. Escapes in literals and classes: \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH. # begins a
// comment. A rule ends with its line, except inside parentheses and after | or ::=. Characters are
// code points, written as UTF-8; \xHH is one too.
Status ParseGbnf(Terms* terms, StringView grammar, Term* out, Diag* diag);

}  // namespace arn
