// An OS layer that fails on demand. failing_os.cc replaces platform/os/pages_posix.cc at link time.
#pragma once

#include <cstdint>

namespace arn::test {

// Fails the OS memory request after the next n (0: the next one). Negative: none fails.
void FailAfter(int64_t n);
// Returns the number of spans reserved and not released.
int64_t LiveReservations();

}  // namespace arn::test
