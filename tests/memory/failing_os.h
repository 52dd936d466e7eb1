// An OS layer that fails on demand. failing_os.cc takes the place of platform/os/pages_posix.cc at
// link time.
#pragma once

#include <cstdint>

namespace arn::test {

// The n-th call from now that asks the OS for memory fails (0: the next one); none when negative.
void FailAfter(int64_t n);
// Spans that were reserved and not released.
int64_t LiveReservations();

}  // namespace arn::test
