// The values of `format` that are enforced, each exactly as its RFC defines it.
#pragma once

#include "runtime/constrain/json_schema/context.h"

namespace arn::json_schema {

struct NumberRange {
  const char* min;
  const char* max;
};

enum class FormatKind : uint8_t { kUnknown, kText, kIntegers, kHint };
// kText: strings of a language. kIntegers: integers of a range (int32 and the like, OpenAPI).
// kHint: says nothing about validity (float, double, password).
FormatKind FindFormat(StringView name, NumberRange* range);

// *out: contents of the strings of a format. REQUIRES: kText. `where`: its value in the schema.
Status FormatTerm(Context* context, StringView name, uint32_t where, Term* out);

// Returns the contents of the times in a leap second (RFC 3339).
Term LeapSecondTerm(Context* context);

// *out: contents of the strings that a regular expression matches somewhere.
Status PatternTerm(Context* context, StringView pattern, uint32_t where, Term* out);

}  // namespace arn::json_schema
