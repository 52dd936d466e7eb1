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
#include "runtime/constrain/json_schema/style.h"
#include "runtime/constrain/terms.h"

namespace arn {

struct JsonSchemaOptions {
  bool any_order = false;       // properties in any order; else in the schema's, others after them
  bool any_whitespace = false;  // white space wherever RFC 8259 allows it; else none
  bool any_spelling = false;    // strings as JSON allows them; else in one way (kCanonicalJson)
  // Steps after which a schema counts as too complicated; never more than its size allows.
  uint64_t max_steps = UINT64_MAX;
};

// *out: the term of the valid texts, for Terms::Resolve(). Keeps reachable what it needs of
// `terms`. `arena` takes tables that must live as long as the terms; `text` may go away.
// kBadArgument: this is no JSON, or no schema; kUnsupported: what cannot be enforced exactly;
// kOutOfMemory.
Status CompileJsonSchema(StringView text, const JsonSchemaOptions& options, Terms* terms,
                         Arena* arena, Diag* diag, Term* out);

struct ArgumentStyle {
  json_schema::Style values;            // how values are spelled
  json_schema::ObjectSyntax arguments;  // how all arguments together are
  // Not kNothing: an argument whose schema says that it is a string has no quotes, and is a text of
  // these.
  Term bare_texts = kNothing;
};

// The same for the arguments of a tool that takes `text`: an object, spelled as `style` says.
// Without additionalProperties and the like in its schema it has the declared properties only.
Status CompileArguments(StringView text, const ArgumentStyle& style, Terms* terms, Arena* arena,
                        Diag* diag, Term* out);

}  // namespace arn
