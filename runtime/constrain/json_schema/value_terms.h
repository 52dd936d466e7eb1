// Terms of the solved nodes: a rule each. Arrays and objects are custom terms that hold what has
// come so far (which properties, how many items), and are expanded one item at a time, so that a
// thousand optional properties or ten thousand items cost nothing in advance.
#pragma once

#include "runtime/constrain/json_schema/context.h"

namespace arn::json_schema {

struct Style {
  bool any_order = false;  // properties in any order, not in that of the schema
  Term space = kEmpty;     // what may be between tokens
};

// Defines a rule for each node with a value. *out: the rule of node 0.
Status BuildValueTerms(Context* context, const Style& style, Term* out);

// Context of the terms of arrays and objects.
struct TermTable {
  Style style;
  const NodeTable* nodes;  // with Node::rule
  Term rules;              // a term that keeps all rules alive
};

// The rest of an array after its bracket and space, of an object after its brace and space.
// `shape`, `table` and `arena` must outlive the terms. kNothing: out of memory.
Term ArrayTerm(Terms* terms, Arena* arena, const ArrayShape* shape, const TermTable* table);
Term UniqueTextsTerm(Terms* terms, Arena* arena, const StringTerms& strings,
                     const ArrayShape* shape, const TermTable* table);
Term ObjectTerm(Terms* terms, Arena* arena, const StringTerms& strings, const ObjectShape* shape,
                const TermTable* table);

// A term that no string reaches, but from which all of `rules` are reached.
Term KeepTerm(Terms* terms, Span<const Term> rules);

}  // namespace arn::json_schema
