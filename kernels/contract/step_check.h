// Base class of the step checks: error messages and value lookups.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn {

class StepCheck {
 protected:
  StepCheck(const Program& program, const Step& step, uint32_t index, Diag* diag)
      : program_(program), step_(step), index_(index), diag_(diag) {}

  Status ValueError(const char* what, uint64_t found, uint64_t expected) {
    return diag_->Fail(Status::kBadArgument,
                       "program step %u (%s, layer %u): %s is %llu, expected %llu", index_,
                       OpName(step_.op), step_.layer, what, static_cast<unsigned long long>(found),
                       static_cast<unsigned long long>(expected));
  }
  Status Equals(const char* what, uint64_t found, uint64_t expected) {
    return found == expected ? Status::kOk : ValueError(what, found, expected);
  }
  // `problem` is a predicate, e.g. "are not f32 rows".
  Status UnsupportedError(const char* what, const char* problem) {
    return diag_->Fail(Status::kUnsupported, "program step %u (%s, layer %u): %s %s", index_,
                       OpName(step_.op), step_.layer, what, problem);
  }
  // Returns 0 if the value does not exist.
  uint32_t Width(ValueId id) const {
    return id < program_.values.size() ? program_.values[id].width : 0;
  }

  const Program& program_;
  const Step& step_;
  const uint32_t index_;
  Diag* const diag_;
};

}  // namespace arn
