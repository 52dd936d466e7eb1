#pragma once

#include <cstdint>

namespace arn {

// A time of the calendar, as the system's time zone has it.
struct LocalTime {
  int32_t year, month, day, hour, minute, second;  // month and day from 1
  uint32_t microsecond;
};

// Now. The first call may read the system's time zone (and allocate for that); the others do not.
LocalTime ReadLocalTime();

}  // namespace arn
