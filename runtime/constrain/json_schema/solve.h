// Which nodes have a value: the least solution, so that a value whose parts never end is none.
#pragma once

#include "runtime/constrain/json_schema/context.h"

namespace arn::json_schema {

// Sets Node::has_value, and what depends on it in the shapes. Refuses a schema without a value, and
// shapes that could not be held exactly.
Status Solve(Context* context);

}  // namespace arn::json_schema
