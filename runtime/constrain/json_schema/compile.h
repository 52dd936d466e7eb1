// JSON Schema (draft 2020-12, and the spellings of drafts 4 to 7) as a term: the JSON texts that
// are valid. docs/json-schema.md says which keywords are enforced and how values are spelled.
//
// Nothing is looser or tighter than the schema says. What cannot be enforced exactly is refused
// with the JSON pointer of the keyword.
//
// Stages, each in a file of its own: text to values (document.h), references (references.h), atoms
// to facts (expand.h), facts to shapes (shapes.h), which nodes have a value (solve.h), nodes to
// rules (value_terms.h).
#pragma once

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/constrain/terms.h"

namespace arn {

// *out: the term of the valid texts, for Terms::Resolve(). Keeps reachable what it needs of
// `terms`. `arena` takes tables that must live as long as the terms; `text` may go away.
// kBadArgument: this is no JSON, or no schema; kUnsupported: what cannot be enforced exactly;
// kOutOfMemory. any_order: properties in any order; else in that of the schema, others after them.
// any_whitespace: whitespace wherever RFC 8259 allows it; else none.
Status CompileJsonSchema(StringView text, bool any_order, bool any_whitespace, Terms* terms,
                         Arena* arena, Diag* diag, Term* out);

}  // namespace arn
