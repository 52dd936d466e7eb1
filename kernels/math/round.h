// Rounds a float to an integer by addition.
#pragma once

namespace arn {

// 1.5 * 2^23. Added to a float in [-2^22, 2^22], leaves the nearest integer (ties to even) in the
// low mantissa bits. Subtracted again, gives that integer as a float.
inline constexpr float kRoundToInteger = 12582912.0f;

}  // namespace arn
