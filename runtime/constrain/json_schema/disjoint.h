// Tells whether two schemas surely have no value in common: their types differ, or their constants,
// or a property that one of them requires. Decides most of what oneOf denies without expanding it.
#pragma once

#include "runtime/constrain/json_schema/context.h"

namespace arn::json_schema {

// False if it is not known.
bool AreDisjoint(Context* context, uint32_t a, uint32_t b);

}  // namespace arn::json_schema
