// Says whether the library has backends with devices, so that the compiler leaves out what only
// they need.
#pragma once

namespace arn {

#ifdef ARENITE_NO_DEVICES
inline constexpr bool kHasDevices = false;
#else
inline constexpr bool kHasDevices = true;
#endif

}  // namespace arn
