#include "platform/os/civil_time.h"

#include <chrono>
#include <ctime>

namespace arn {

CalendarTime CalendarTimeOf(int64_t seconds, uint32_t nanoseconds) {
  using std::chrono::floor, std::chrono::days;
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const auto midnight = floor<days>(time);
  const std::chrono::year_month_day date(midnight);
  const auto second = static_cast<int32_t>((time - midnight).count());
  return {int{date.year()},
          static_cast<int32_t>(unsigned{date.month()}),
          static_cast<int32_t>(unsigned{date.day()}),
          second / 3600,
          second / 60 % 60,
          second % 60,
          nanoseconds / 1000};
}

CalendarTime ReadUtcTime() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return CalendarTimeOf(now.tv_sec, static_cast<uint32_t>(now.tv_nsec));
}

}  // namespace arn
