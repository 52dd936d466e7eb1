// Compiles constraints from any bytes, and follows any text through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/constrain/constraint.h"

namespace arn::test {

// The bytes before the first NUL byte are the expression or grammar (for tool calls one that
// selects a format and a choice, and then the tools), the others a text. Compiles it in a large
// block and in a small one, and follows the text in both. Returns whether it compiled. Describes a
// wrong result in `problem`: a refusal without a reason, answers that depend on the size of the
// block, a mask that differs from testing its tokens, an allowed text that is not UTF-8.
bool ExerciseConstraint(ConstraintKind kind, const uint8_t* data, size_t size,
                        std::string* problem);

}  // namespace arn::test
