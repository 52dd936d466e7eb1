#pragma once

#include <cstdint>

namespace arn {

// Returns nanoseconds of a monotonic clock with an arbitrary zero.
uint64_t MonotonicNs();

// Sleeps for `ns`, or less if a signal arrives.
void SleepNs(uint64_t ns);

}  // namespace arn
