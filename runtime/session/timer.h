// Adds its lifetime to a total.
#pragma once

#include <cstdint>

#include "platform/os/clock.h"

namespace arn {

class Timer {
 public:
  explicit Timer(uint64_t* total_ns) : total_(total_ns), start_(MonotonicNs()) {}
  ~Timer() { *total_ += MonotonicNs() - start_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  uint64_t* total_;
  uint64_t start_;
};

}  // namespace arn
