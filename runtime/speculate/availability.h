// Tells if the library has speculation (ARENITE_SPECULATION).
#pragma once

namespace arn {

#ifdef ARENITE_NO_SPECULATION
inline constexpr bool kHasSpeculation = false;
#else
inline constexpr bool kHasSpeculation = true;
#endif
inline constexpr char kNoSpeculation[] =
    "this library is built without speculation (ARENITE_SPECULATION)";

}  // namespace arn
