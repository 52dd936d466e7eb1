// How values are spelled: as JSON, or as the arguments of a call in a syntax of its own.
#pragma once

#include "runtime/constrain/code_points.h"
#include "runtime/constrain/terms.h"

namespace arn::json_schema {

// object = open [ property ( comma property )* ] close
// property = name_begin name name_end value value_end
struct ObjectSyntax {
  Term open = kNothing, name_begin = kNothing, name_end = kNothing, value_end = kNothing,
       comma = kNothing, close = kNothing;
  bool has_words = false;  // names are words: letters, digits and underscores
};

struct Style {
  bool any_order = false;  // properties in any order, not in that of the schema
  TextForm form = TextForm::kJsonString;
  bool has_regular_names = false;  // languages of names are regular terms, for FitNames()
  Term space = kEmpty;             // what may be between tokens
  Term comma = kNothing;           // between the items of an array
  Term quote = kNothing;           // before and after the content of a string
  // The contents that a string may have, for texts that end at a mark; kNothing: all.
  Term contents = kNothing;
  Term null_value = kNothing, false_value = kNothing, true_value = kNothing;
  ObjectSyntax object;
};

// JSON. `space`: between tokens; after_comma and after_colon: there instead.
Style JsonStyle(Terms* terms, TextForm form, Term space, Term after_comma, Term after_colon);

// Returns every text in which no part is `mark`. skips_space: nor one with white space in it.
Term WithoutMark(Terms* terms, StringView mark, bool skips_space);

}  // namespace arn::json_schema
