// Tells if the library has the scheduler (ARENITE_SCHEDULER).
#pragma once

namespace arn {

#ifdef ARENITE_NO_SCHEDULER
inline constexpr bool kHasScheduler = false;
#else
inline constexpr bool kHasScheduler = true;
#endif
inline constexpr char kNoScheduler[] =
    "this library is built without the scheduler (ARENITE_SCHEDULER)";

}  // namespace arn
