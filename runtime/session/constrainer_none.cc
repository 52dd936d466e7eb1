// Replaces constrainer.cc in libraries without constraints (ARENITE_CONSTRAINTS): no sequence ever
// has one, since the plan refuses constraint_bytes. Calls that REQUIRE one are never reached.
#include "runtime/constrain/availability.h"
#include "runtime/session/constrainer.h"

namespace arn {

Status Constrainer::Init(const LogitsOps*, Diag*) { return Status::kOk; }

Status Constrainer::Set(uint32_t, const TokenConstraintOptions&, uint32_t) {
  return core_.diag.Fail(Status::kUnsupported, "%s", kNoConstraints);
}

Status Constrainer::CompileApart(const TokenConstraintOptions&, Span<std::byte>,
                                 TokenConstraint** out, Diag* diag) const {
  *out = nullptr;
  return diag->Fail(Status::kUnsupported, "%s", kNoConstraints);
}

void Constrainer::Use(uint32_t, TokenConstraint*) {}
void Constrainer::DropAll() {}
bool Constrainer::HasSome() const { return false; }
bool Constrainer::HasFree() const { return false; }
SavedConstraint Constrainer::ToSave(uint32_t) { return {}; }
Status Constrainer::Restore(uint32_t, const SavedConstraint&) { return Status::kOk; }
TokenConstraint* Constrainer::Find(uint32_t) const { return nullptr; }
void Constrainer::SetEnds(uint32_t, Span<const int32_t>, bool) {}
Status Constrainer::Read(uint32_t) { return Status::kInternal; }
bool Constrainer::MustEnd(uint32_t) { return false; }
bool Constrainer::HasBegun(uint32_t) const { return false; }
Span<const int32_t> Constrainer::ForcedIds(uint32_t) { return {}; }
uint32_t Constrainer::Narrow(uint32_t, int32_t, Span<int32_t>, uint32_t, uint32_t*) { return 0; }
bool Constrainer::Allows(uint32_t, int32_t) { return false; }
Status Constrainer::Choose(uint32_t, const float*, Sampler*, int32_t*) { return Status::kInternal; }
Status Constrainer::ReadAndMask(uint32_t, const float*, const float**) { return Status::kInternal; }
Status Constrainer::ReadAndMaskInPlace(uint32_t, float*) { return Status::kInternal; }
Status Constrainer::CheckFailure(uint32_t) { return Status::kOk; }
void Constrainer::LimitWork(uint64_t) {}
bool Constrainer::IsPutOff(uint32_t) const { return false; }
void Constrainer::EndStep(uint32_t) {}
void Constrainer::Fork(uint32_t, uint32_t) {}
void Constrainer::Reorder(Span<const uint32_t>) {}
void Constrainer::EndBeams(uint32_t, uint32_t, const ConstraintUse&) {}

}  // namespace arn
