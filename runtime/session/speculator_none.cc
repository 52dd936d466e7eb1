// Replaces speculator.cc in libraries without speculation (ARENITE_SPECULATION): every token runs
// alone.
#include "runtime/session/speculator.h"

namespace arn {

Speculator::~Speculator() = default;
Status Speculator::Init(const SessionPlan&, Diag*) { return Status::kOk; }
void Speculator::Begin(uint32_t, bool) {}
void Speculator::Settle() {}
uint32_t Speculator::TakeRun(uint32_t, Span<const int32_t>) { return 0; }
Status Speculator::RunChosen(uint32_t sequence, int32_t id, uint32_t) {
  return decoder_.RunChosen(sequence, id);
}

}  // namespace arn
