#pragma once

#include <cstdint>

namespace arn {

// Nanoseconds of a clock that never goes back; its zero means nothing.
uint64_t MonotonicNs();

}  // namespace arn
