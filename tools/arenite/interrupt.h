// Ctrl-C and SIGTERM end the running call of a session in good order, so that what was done is
// still reported. The second one ends the program at once.
#pragma once

#include <arenite/arenite.h>

namespace arn::tool {

// While it lives, a signal cancels `session`. One at a time.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(arn_session* session);
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;
};

// Exit code of a program that was interrupted, as shells have it (128 + SIGINT).
inline constexpr int kExitInterrupted = 130;

}  // namespace arn::tool
