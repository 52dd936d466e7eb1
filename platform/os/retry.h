// Retries system calls that a signal interrupts.
#pragma once

#include <cerrno>

namespace arn {

// Repeats `call` while it fails with EINTR and returns its result (-1 with errno). Not for close():
// Linux has released the descriptor by then.
template <typename Call>
auto Retried(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

}  // namespace arn
