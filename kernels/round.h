// Rounding a float by an addition.
#pragma once

namespace arn {

// Added to a float of [-2^22, 2^22] it leaves the nearest integer (even, of two) in the lower bits;
// taken away again, that integer as a float. 1.5 * 2^23.
inline constexpr float kRoundToInteger = 12582912.0f;

}  // namespace arn
