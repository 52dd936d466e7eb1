// Tells if the library has constraints (ARENITE_CONSTRAINTS).
#pragma once

namespace arn {

#ifdef ARENITE_NO_CONSTRAINTS
inline constexpr bool kHasConstraints = false;
#else
inline constexpr bool kHasConstraints = true;
#endif
inline constexpr char kNoConstraints[] =
    "this library is built without constraints (ARENITE_CONSTRAINTS)";

}  // namespace arn
