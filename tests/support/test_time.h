// Bounds on time that hold on a busy machine.
#pragma once

#include <ctime>

namespace arn::test {

// Factor of time under sanitizers and emulators.
#if defined(ARN_SANITIZE_ADDRESS) || defined(ARN_SANITIZE_THREAD) || defined(ARN_EMULATED)
inline constexpr double kSlowdown = 10;
#else
inline constexpr double kSlowdown = 1;
#endif

// Returns the CPU time of this thread in seconds. Unlike the clock, it stands still while other
// programs run.
inline double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace arn::test
