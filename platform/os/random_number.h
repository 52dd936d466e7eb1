#pragma once

#include <cstdint>

namespace arn {

// Returns a number that differs between calls and runs, from the system's random source or, if that
// fails, from clocks and addresses. For seeds, not for secrets.
uint64_t RandomNumber();

}  // namespace arn
