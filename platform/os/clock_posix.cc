#include <ctime>

#include "platform/os/clock.h"
#include "platform/os/retry.h"

namespace arn {

uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void SleepNs(uint64_t ns) {
  timespec left;
  left.tv_sec = static_cast<time_t>(ns / 1000000000u);
  left.tv_nsec = static_cast<long>(ns % 1000000000u);
  (void)Retried([&] { return nanosleep(&left, &left); });
}

}  // namespace arn
