// Takes the times that RunArgs::step_ns asks for: one reading of the clock a step, none when
// nothing is asked for.
#pragma once

#include <cstdint>

#include "platform/os/clock.h"

namespace arn {

class StepClock {
 public:
  // ns: of the run's first step, or null.
  explicit StepClock(uint64_t* ns) : ns_(ns), last_(ns == nullptr ? 0 : MonotonicNs()) {}

  // The step that ran since the beginning, or since the last Next(), has ended.
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
