// DraftModel: a smaller model with the same tokens proposes what it would write itself.
//
// It keeps the ids that its cache holds, and reads what a text has beyond them only when it is
// asked for guesses. So it needs to know nothing of rewinds, shifts, forks, other sequences, or
// restored sessions: each is a text that differs from some place on.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/session/side_model.h"
#include "runtime/speculate/drafter.h"

namespace arn {

class DraftModel final : public Drafter {
 public:
  // Makes it in the slice of target->plan. `wanted`: the session's plan with the options that are
  // read only while it is created. `target` must outlive the result. A failure is explained in
  // *diag.
  static Status Create(SessionCore* target, const SessionPlan& wanted, DraftModel** out,
                       Diag* diag);
  DraftModel(const DraftModel&) = delete;
  DraftModel& operator=(const DraftModel&) = delete;

  Offer Look(Span<const int32_t> ids, uint32_t most) override;
  // Ends early if the session's call is cancelled.
  Proposal Propose(Span<const int32_t> ids, Span<int32_t> out) override;

 private:
  DraftModel(SessionCore* target, const SessionPlan& plan, std::byte* block);
  // Runs what is missing of the text, with the logits of its last token.
  Status Read(Span<const int32_t> ids);

  SessionCore& target_;
  SideModel model_;
  size_t n_common_ = 0;  // leading tokens of the text of the last Look() that are in the cache
  MeanNs guess_time_, token_time_;  // of a guess, of a token that is read
};

}  // namespace arn
