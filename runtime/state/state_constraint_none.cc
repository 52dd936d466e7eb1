// Replaces state_constraint.cc in libraries without constraints (ARENITE_CONSTRAINTS): nothing is
// written, and of what was saved only that it exists is read, so that a restore refuses it or
// leaves it out.
#include "runtime/constrain/availability.h"
#include "runtime/state/state_constraint.h"

namespace arn {

uint32_t CountConstraintWords(const SavedConstraint&, uint32_t) { return 0; }
Status WriteConstraint(const SavedConstraint&, uint32_t, StateWriter*) { return Status::kOk; }

Status ReadConstraint(uint32_t, Span<const std::byte>, uint32_t s, SavedConstraint* out, Diag*) {
  out->owner = s;
  return Status::kOk;
}

Status CheckConstraint(const SavedConstraint& constraint, uint32_t, uint32_t,
                       const ConstraintsPlan&, uint32_t*, Diag* diag) {
  if (!constraint.exists()) return Status::kOk;
  return diag->Fail(Status::kUnsupported, "%s", kNoConstraints);
}

}  // namespace arn
