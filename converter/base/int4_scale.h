// Bound of int4 scales, shared by those who choose scales and those who keep them.
#pragma once

#include <cfloat>

namespace arn::convert {

// Smallest magnitude of an int4 scale: packed panels hold a sixteenth of the scale, which must be a
// normal number too.
inline constexpr float kSmallestInt4Scale = 16 * FLT_MIN;

}  // namespace arn::convert
