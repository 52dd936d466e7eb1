// Terms of numbers and strings from the facts about them.
#pragma once

#include "runtime/constrain/json_schema/expand.h"

namespace arn::json_schema {

// Scalars of one type that satisfy facts: finitely many, or a term. Facts about other types are
// passed over.
struct Scalars {
  List<StringView> texts;  // constants: texts of strings, plain spellings of numbers
  Term others = kNothing;
};

// Adds the numbers that satisfy the facts.
Status AddNumbers(Context* context, Span<const Fact> facts, Scalars* out);

// Adds the strings that satisfy the facts: the terms are of contents, without quotes.
// is_regular: only regular terms.
Status AddStrings(Context* context, Span<const Fact> facts, bool is_regular, Scalars* out);

// Sorts texts and drops duplicates.
void SortTexts(List<StringView>* texts);

// Returns the terms of both, kNothing if there are none.
Status NumberTerm(Context* context, Scalars* scalars, Term* out);
Status StringTerm(Context* context, Scalars* scalars, Term* out);

}  // namespace arn::json_schema
