// Measures step times for RunArgs::step_ns. Reads the clock once per step, and never if step_ns is
// null.
#pragma once

#include <cstdint>

#include "platform/os/clock.h"

namespace arn {

class StepClock {
 public:
  // ns: counter of the run's first step, or null.
  explicit StepClock(uint64_t* ns) : ns_(ns), last_(ns == nullptr ? 0 : MonotonicNs()) {}

  // Call at the end of each step: adds the time since construction or the previous Next().
  void Next() {
    if (ns_ == nullptr) return;
    const uint64_t now = MonotonicNs();
    *ns_++ += now - last_;
    last_ = now;
  }

 private:
  uint64_t* ns_;
  uint64_t last_;
};

}  // namespace arn
