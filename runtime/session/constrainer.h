// Constrainer: the constraints of a session's sequences. The chooser asks it for the next token of
// a sequence that has one. Reads the tokens that a sequence has gained since it looked last, so
// that forks, rewinds and prefills need no call here.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/token_constraint.h"
#include "runtime/session/core.h"
#include "runtime/session/sequences.h"
#include "runtime/state/state_constraint.h"

namespace arn {

// The use of a constraint by a sequence. Tokens [start, end) of it are read.
struct ConstraintUse {
  TokenConstraint* constraint = nullptr;
  bool is_pending = true;  // starts at the next choice
  bool is_cut = false;     // a context shift dropped tokens that were read
  uint32_t start = 0;
  uint32_t end = 0;
  uint32_t n_dropped = 0;  // of Sequence, when they were read
  uint64_t hash = 0;       // of their ids
};

class Constrainer {
 public:
  // All arguments must outlive the part.
  Constrainer(SessionCore* core, Sequences* sequences) : core_(*core), sequences_(*sequences) {}

  // Reads the trees of the tokens' bytes, if the plan has constraints. kUnsupported without them.
  Status Init(const LogitsOps* ops, Diag* diag);

  // Where the text that a constraint is about begins: at the next token that is chosen.
  static constexpr uint32_t kAtNextChoice = SavedConstraint::kAtNextChoice;
  // Compiles a constraint for a sequence, whose old one is dropped, also on failure. `first`: the
  // position of the constrained text's first token; tokens that follow it are read at once.
  // kBadState without constraint_bytes, or if all constraints are in use.
  Status Set(uint32_t sequence, const TokenConstraintOptions& options, uint32_t first);
  // Compiles a constraint that any of the sequences may use, in the caller's block. Reads nothing
  // that changes once the session is there: callable from any thread, beside all other calls.
  Status CompileApart(const TokenConstraintOptions& options, Span<std::byte> block,
                      TokenConstraint** out, Diag* diag) const;
  // Gives a sequence a constraint of CompileApart(), which must outlive its use, in place of its
  // old one: it begins at the next choice.
  void Use(uint32_t sequence, TokenConstraint* constraint);
  void Drop(uint32_t sequence) {
    if (!uses_.empty()) uses_[sequence] = ConstraintUse();
  }
  void DropAll();
  bool HasSome() const;
  // True if Set() finds room for one more constraint.
  bool HasFree() const;
  // Returns what Restore() needs to go on with the sequence's constraint. The texts are those of
  // the constraint.
  SavedConstraint ToSave(uint32_t sequence);
  // Compiles a saved constraint for a sequence without one; its tokens are read when the next one
  // is chosen. Sequences are restored in order, so that a fork's owner comes first.
  Status Restore(uint32_t sequence, const SavedConstraint& saved);
  // The constraint of a sequence, for its statistics; null: none.
  TokenConstraint* Find(uint32_t sequence) const;
  bool Has(uint32_t sequence) const { return Find(sequence) != nullptr; }

  // The calls below REQUIRE Has(sequence).

  // Tokens that end the text besides the model's own, until the next call; `are_allowed` false: no
  // token ends it.
  void SetEnds(uint32_t sequence, Span<const int32_t> extra, bool are_allowed);
  // Reads the sequence's new tokens. kBadState if one is not allowed.
  Status Read(uint32_t sequence);
  // The calls below also REQUIRE that Read(sequence) has succeeded since the sequence changed.
  bool MustEnd(uint32_t sequence);
  // True if the constrained text has tokens.
  bool HasBegun(uint32_t sequence) const;
  // The next tokens, as far as they are certain without the logits; valid until the next call.
  Span<const int32_t> ForcedIds(uint32_t sequence);
  // Cuts n guesses of the tokens after `id`, which has been chosen, as
  // TokenConstraint::LookAhead().
  uint32_t Narrow(uint32_t sequence, int32_t id, Span<int32_t> guesses, uint32_t n,
                  uint32_t* n_certain);
  // True if the token, the best by its logit, may come next.
  bool Allows(uint32_t sequence, int32_t id);
  // Chooses a token. logits: f32 [vocab], after all processors. Greedy takes the best allowed one;
  // sampling draws as from logits without those not allowed. kBadState if none is allowed.
  Status Choose(uint32_t sequence, const float* logits, Sampler* sampler, int32_t* out_id);
  // Reads the sequence's new tokens and lowers the logits of those not allowed next, so that none
  // has any weight. *out: f32 [vocab], valid until the next call.
  Status ReadAndMask(uint32_t sequence, const float* logits, const float** out);
  Status ReadAndMaskInPlace(uint32_t sequence, float* logits);
  // kOutOfMemory if the constraint has failed since Read(): then what it said may be wrong.
  Status CheckFailure(uint32_t sequence);
  // Limits the work of each constraint (TokenConstraint::SetWork()), unless it must be finished for
  // one of its sequences.
  void LimitWork(uint64_t units);
  // True if the last failure of the sequence's constraint is that it has no work left.
  bool IsPutOff(uint32_t sequence) const;
  // Ends a step: its time counts.
  void EndStep(uint32_t sequence);

  // Sequence `to` continues as `from` does, with the same constraint.
  void Fork(uint32_t from, uint32_t to);
  // Sequence i continues as parents[i] did.
  void Reorder(Span<const uint32_t> parents);
  // Returns the state of a sequence before a beam search, for EndBeams().
  ConstraintUse UseOf(uint32_t sequence) const {
    return uses_.empty() ? ConstraintUse() : uses_[sequence];
  }
  // Sequences 0 to num_beams - 1, which are empty now, have no constraint, but for the selected
  // one.
  void EndBeams(uint32_t num_beams, uint32_t selected, const ConstraintUse& use);

 private:
  Span<std::byte> Slot(uint32_t slot) const;
  Span<std::byte> FreeSlot() const;
  Status Compile(uint32_t sequence, const TokenConstraintOptions& options);
  Status CompileIn(const TokenConstraintOptions& options, Span<std::byte> block,
                   TokenConstraint** out, Diag* diag) const;
  void HeedShift(uint32_t sequence);
  void Mask(uint32_t sequence, const float* logits, float* out);
  int32_t BestAllowed(uint32_t sequence, const float* logits);
  int32_t BestOfMask(uint32_t sequence, const float* logits);

  SessionCore& core_;
  Sequences& sequences_;
  const LogitsOps* ops_ = nullptr;
  TokenSet tokens_;
  Span<ConstraintUse> uses_;
  Span<ConstraintUse> old_uses_;  // scratch of Reorder
  float* masked_ = nullptr;       // f32 [vocab]
  uint32_t* found_ = nullptr;     // u32 [kConstraintBlock]
  uint64_t step_ns_ = 0;
};

}  // namespace arn
