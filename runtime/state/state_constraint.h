// Constraint of a saved sequence: the options that it was compiled from and where its text begins.
// Reading the sequence's tokens from there gives the state, so nothing of the compiled form is
// saved.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/constrain/token_constraint.h"
#include "runtime/memory/session_plan.h"
#include "runtime/state/state_writer.h"

namespace arn {

inline constexpr uint32_t kConstraintField = 1u << 17;
inline constexpr uint32_t kSharedConstraintField = kConstraintField + 1;  // a fork's: 3 words

struct SavedConstraint {
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kAtNextChoice = UINT32_MAX;

  uint32_t owner = kNone;          // the first sequence that has it; kNone: no constraint
  uint32_t start = kAtNextChoice;  // position of the text's first token
  // A context shift has dropped tokens of the text, so that its state cannot be found again.
  bool is_cut = false;
  uint64_t block_bytes = 0;  // of the owner only, as the options
  // The texts point into the bytes read or the constraint; calls.format is not saved.
  TokenConstraintOptions options;

  bool exists() const { return owner != kNone; }
};

// Returns the words of the fields that WriteConstraint writes for sequence `s`.
uint32_t CountConstraintWords(const SavedConstraint& constraint, uint32_t s);
Status WriteConstraint(const SavedConstraint& constraint, uint32_t s, StateWriter* writer);
// Reads the untrusted words of a field of sequence `s`, at any alignment. kBadSave: a wrong size or
// a value out of range. The owner of a shared one is below `s`, but may have no constraint.
Status ReadConstraint(uint32_t id, Span<const std::byte> words, uint32_t s, SavedConstraint* out,
                      Diag* diag);

// Checks a constraint that was read for sequence `s` of n_tokens tokens against a session's plan.
// *n_constraints: different ones so far. kBadSave: it begins behind the tokens; kUnsupported: the
// session has no room for it.
Status CheckConstraint(const SavedConstraint& constraint, uint32_t s, uint32_t n_tokens,
                       const ConstraintsPlan& plan, uint32_t* n_constraints, Diag* diag);

}  // namespace arn
