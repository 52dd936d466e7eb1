// Replaces state_constraint.cc in libraries without constraints (ARENITE_CONSTRAINTS): nothing is
// written, and what was saved is known to exist only, so that a restore refuses it or leaves it
// out.
#include "runtime/state/state_constraint.h"

namespace arn {

uint32_t CountConstraintWords(const SavedConstraint&, uint32_t) { return 0; }
Status WriteConstraint(const SavedConstraint&, uint32_t, StateWriter*) { return Status::kOk; }

Status ReadConstraint(uint32_t, Span<const std::byte>, uint32_t s, SavedConstraint* out, Diag*) {
  out->owner = s;
  return Status::kOk;
}

}  // namespace arn
