// Ctrl-C and SIGTERM end the running call of a session in good order, so that what was done is
// still reported. The second one ends the program at once.
#pragma once

#include <arenite/arenite.h>
#include <signal.h>

namespace arn::tool {

// While it lives, Ctrl-C does nothing but end a read() that waits (EINTR). Made before
// CancelOnSignal, which takes its place for a while.
class WakeOnInterrupt {
 public:
  WakeOnInterrupt();
  ~WakeOnInterrupt();
  WakeOnInterrupt(const WakeOnInterrupt&) = delete;
  WakeOnInterrupt& operator=(const WakeOnInterrupt&) = delete;

 private:
  struct sigaction before_;
};

// While it lives, Ctrl-C cancels `session`, and so does SIGTERM unless that is to end the program
// as ever. One at a time.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(arn_session* session, bool with_terminate = true);
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;

 private:
  bool with_terminate_;
  struct sigaction interrupt_before_, terminate_before_;
};

// Exit code of a program that was interrupted, as shells have it (128 + SIGINT).
inline constexpr int kExitInterrupted = 130;

}  // namespace arn::tool
