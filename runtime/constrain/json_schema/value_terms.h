// Terms of the solved nodes: a rule each. Arrays and objects are custom terms that hold what has
// come so far (which properties, how many items), and are expanded one item at a time, so that a
// thousand optional properties or ten thousand items cost nothing in advance.
#pragma once

#include "runtime/constrain/json_schema/context.h"

namespace arn::json_schema {

// Context of the terms of arrays and objects.
struct TermTable {
  Style style;
  Span<const Term> values;  // the rule of each node
  Term rules;               // a term that keeps all rules and the terms of `style` alive
};

// Defines a rule, by the context's style, for each node with a value. (*out)->values[0] is that of
// the whole.
Status BuildValueTerms(Context* context, const TermTable** out);

// The rest of an array after its bracket and space, of an object after its opening.
// `shape`, `table` and `arena` must outlive the terms. kNothing: out of memory.
Term ArrayTerm(Terms* terms, Arena* arena, const ArrayShape* shape, const TermTable* table);
Term UniqueTextsTerm(Terms* terms, Arena* arena, const StringTerms& strings,
                     const ArrayShape* shape, const TermTable* table);
Term ObjectTerm(Terms* terms, Arena* arena, const StringTerms& strings, const ObjectShape* shape,
                const TermTable* table);

// A term that no string reaches, but from which all of `rules` are reached.
Term KeepTerm(Terms* terms, Span<const Term> rules);
// Appends the terms of a style that objects and arrays are made of when they are expanded.
Status AppendSyntax(const ObjectSyntax& syntax, Arena* arena, List<Term>* out);

}  // namespace arn::json_schema
