// Scheduler::Selecting: lets a step select sequences, and selects the caller's at its end.
#pragma once

#include "runtime/session/scheduler.h"

namespace arn {

class Scheduler::Selecting {
 public:
  explicit Selecting(Sequences* sequences)
      : sequences_(*sequences), selected_(sequences->selected()) {}
  ~Selecting() { sequences_.Select(selected_); }
  Selecting(const Selecting&) = delete;
  Selecting& operator=(const Selecting&) = delete;

 private:
  Sequences& sequences_;
  uint32_t selected_;
};

}  // namespace arn
