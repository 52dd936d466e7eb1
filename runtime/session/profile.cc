#include "runtime/session/profile.h"

#include <cstring>
#include <new>

namespace arn {

void StepProfile::Start(const Program& program, void* memory) {
  const size_t n = program.steps.size();
  auto* totals = static_cast<Total*>(memory);
  for (size_t i = 0; i < n; ++i) new (&totals[i]) Total();
  totals_ = {totals, n};
  run_ns_ = reinterpret_cast<uint64_t*>(totals + n);
}

uint64_t* StepProfile::BeginRun() {
  if (!is_on()) return nullptr;
  std::memset(run_ns_, 0, totals_.size() * sizeof(uint64_t));
  return run_ns_;
}

void StepProfile::EndRun(const Program& program, const RunArgs& args) {
  if (!is_on()) return;
  const Span<const Step> steps = StepsOf(program, args.is_encoder);
  Total* totals = totals_.data() + (steps.data() - program.steps.data());
  for (size_t i = 0; i < steps.size(); ++i) {
    ++totals[i].runs;
    totals[i].ns += run_ns_[i];
    totals[i].work += WorkOf(program, steps[i], args);
  }
}

}  // namespace arn
