// StepProfile: accumulates the cost of each program step in the caller's memory.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"
#include "kernels/contract/step_work.h"
#include "platform/base/span.h"

namespace arn {

class StepProfile {
 public:
  // Totals of one step over all runs.
  struct Total {
    uint64_t runs = 0;
    uint64_t ns = 0;
    StepWork work;
  };

  static uint64_t Bytes(const Program& program) {
    return program.steps.size() * (sizeof(Total) + sizeof(uint64_t));
  }
  // REQUIRES: memory has Bytes(program) bytes, aligned to 8.
  void Start(const Program& program, void* memory);
  void Stop() { totals_ = {}; }
  bool is_on() const { return !totals_.empty(); }

  // Returns RunArgs::step_ns for the next run; null if no profile is active.
  uint64_t* BeginRun();
  // Adds a successful run. Do not call it for a run that failed.
  void EndRun(const Program& program, const RunArgs& args);

  const Total& at(uint32_t step) const { return totals_[step]; }

 private:
  Span<Total> totals_;
  uint64_t* run_ns_ = nullptr;  // [steps], times of one run
};

}  // namespace arn
