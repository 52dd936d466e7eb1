// StepProfile: what each step of a session's program has cost, in the caller's memory.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"
#include "kernels/step_work.h"
#include "platform/base/span.h"

namespace arn {

class StepProfile {
 public:
  // Of one step, over all runs.
  struct Total {
    uint64_t runs = 0;
    uint64_t ns = 0;
    StepWork work;
  };

  static uint64_t Bytes(const Program& program) {
    return program.steps.size() * (sizeof(Total) + sizeof(uint64_t));
  }
  // memory: aligned to 8, Bytes(program).
  void Start(const Program& program, void* memory);
  void Stop() { totals_ = {}; }
  bool is_on() const { return !totals_.empty(); }

  // RunArgs::step_ns of the next run; null when no profile is on.
  uint64_t* BeginRun();
  // That run has succeeded. A run that fails is not counted.
  void EndRun(const Program& program, const RunArgs& args);

  const Total& at(uint32_t step) const { return totals_[step]; }

 private:
  Span<Total> totals_;
  uint64_t* run_ns_ = nullptr;  // [steps]: of one run
};

}  // namespace arn
