// The arguments of a call: the objects of a schema, in a syntax of their own.
#pragma once

#include "runtime/constrain/json_schema/compile.h"
#include "runtime/constrain/json_schema/value_terms.h"

namespace arn::json_schema {

// *out: the objects that the first node of the context has. `table`: the rules of their values.
Status BuildArguments(Context* context, const ArgumentStyle& style, const TermTable& table,
                      Term* out);

// Fits the names of an object's properties to a syntax whose names are words. Refuses a property
// whose name is none.
Status FitNames(Context* context, ObjectShape* shape);

}  // namespace arn::json_schema
