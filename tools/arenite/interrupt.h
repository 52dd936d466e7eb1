// Ctrl-C and SIGTERM cancel the running call of a session, so that results so far are still
// reported. The second one kills the program.
#pragma once

#include <arenite/arenite.h>
#include <signal.h>

namespace arn::tool {

// During its lifetime, Ctrl-C only ends a blocking read() (EINTR). Create it before CancelOnSignal,
// which overrides it temporarily.
class WakeOnInterrupt {
 public:
  WakeOnInterrupt();
  ~WakeOnInterrupt();
  WakeOnInterrupt(const WakeOnInterrupt&) = delete;
  WakeOnInterrupt& operator=(const WakeOnInterrupt&) = delete;

 private:
  struct sigaction before_;
};

// During its lifetime, Ctrl-C cancels `session`; so does SIGTERM, unless with_terminate is false
// (then it keeps its handler). One instance at a time.
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

// During its lifetime, the first Ctrl-C or SIGTERM is only recorded; the second one kills the
// program.
class HeldInterrupt {
 public:
  // `holds` false: does nothing.
  explicit HeldInterrupt(bool holds);
  ~HeldInterrupt();
  HeldInterrupt(const HeldInterrupt&) = delete;
  HeldInterrupt& operator=(const HeldInterrupt&) = delete;
  bool came() const;

 private:
  bool holds_;
  struct sigaction interrupt_before_, terminate_before_;
};

// Exit code of an interrupted program, by shell convention (128 + SIGINT).
inline constexpr int kExitInterrupted = 130;

}  // namespace arn::tool
