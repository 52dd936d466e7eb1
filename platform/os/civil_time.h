#pragma once

#include <cstdint>

namespace arn {

// Time in the Gregorian calendar.
struct CalendarTime {
  int32_t year, month, day, hour, minute, second;  // month and day count from 1
  uint32_t microsecond;
};

// Converts seconds since 1970-01-01 (negative: before) to UTC.
CalendarTime CalendarTimeOf(int64_t seconds, uint32_t nanoseconds);

// Returns the current time in UTC. Local time is not used: the C library functions for it read the
// environment and files, and allocate.
CalendarTime ReadUtcTime();

}  // namespace arn
