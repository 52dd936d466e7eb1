// Replaces speculator.cc in libraries without speculation (ARENITE_SPECULATION): every token runs
// alone.
#include "runtime/session/speculator.h"

namespace arn {

Speculator::~Speculator() = default;
Status Speculator::Init(const SessionPlan&, Diag*) { return Status::kOk; }
void Speculator::Begin(uint32_t, bool) {}
void Speculator::Settle(uint32_t) {}
uint32_t Speculator::TakeRun(uint32_t, Span<const int32_t>) { return 0; }
Status Speculator::RunChosen(uint32_t sequence, int32_t id, uint32_t) {
  return decoder_.RunChosen(sequence, id);
}
bool Speculator::CanVerify() const { return false; }
void Speculator::BeginText(uint32_t) {}
uint32_t Speculator::ProposeAlone(uint32_t, Span<const int32_t>, uint32_t, Span<int32_t>) {
  return 0;
}
SharedGuessPolicy::Share Speculator::Look(uint32_t, Span<const int32_t>, uint32_t) { return {}; }
void Speculator::ShareOut(const SharedGuessPolicy::Plain&, uint32_t, size_t,
                          Span<SharedGuessPolicy::Share>) {}
uint32_t Speculator::Propose(uint32_t, Span<const int32_t>, Span<int32_t>) { return 0; }
void Speculator::StartAhead(uint32_t, uint32_t, uint32_t) {}
void Speculator::AddTime(size_t, uint32_t, uint32_t, uint64_t) {}
void Speculator::EndShared() {}

}  // namespace arn
