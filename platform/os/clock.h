#pragma once

#include <cstdint>

namespace arn {

// Nanoseconds of a clock that never goes back; its zero means nothing.
uint64_t MonotonicNs();

// Lets the calling thread sleep so long, or less when a signal arrives.
void SleepNs(uint64_t ns);

}  // namespace arn
