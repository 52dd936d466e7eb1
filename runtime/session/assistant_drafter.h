// AssistantDrafter: a small model that was trained to guess for this one, and reads its keys and
// values.
//
// At a position it reads the model's row behind the final norm and the token that follows, as a
// multi-token prediction head does, and attends to what the model's own layers have kept of the
// text. So it has nothing to read before its first guess, and none of its own to keep: rewinds,
// forks, shifts and other sequences cost one run of the model, which leaves the next row. For a
// further guess its own row takes the place of the model's; position and keys stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/session/run_observer.h"
#include "runtime/session/sequences.h"
#include "runtime/session/side_model.h"
#include "runtime/speculate/drafter.h"

namespace arn {

class AssistantDrafter final : public Drafter, public RunObserver {
 public:
  // As MtpDrafter::Create(). `sequences` are the target's, and must outlive the drafter.
  static Status Create(SessionCore* target, const Sequences* sequences, const SessionPlan& plan,
                       AssistantDrafter** out, Diag* diag);
  AssistantDrafter(const AssistantDrafter&) = delete;
  AssistantDrafter& operator=(const AssistantDrafter&) = delete;

  void OnRun(Span<const int32_t> before, Span<const int32_t> ids) override;

  // REQUIRES, of both: `ids` begin where a sequence's history does.
  Offer Look(Span<const int32_t> ids, uint32_t most) override;
  // Ends early if the session's call is cancelled.
  Proposal Propose(Span<const int32_t> ids, Span<int32_t> out) override;

 private:
  AssistantDrafter(SessionCore* target, const Sequences* sequences, const SessionPlan& plan,
                   std::byte* block);

  // Returns the sequence whose history this is.
  uint32_t SequenceOf(const int32_t* history) const;
  // Returns the likeliest token of the last run, of those in the clusters that are used.
  int32_t Best();

  SessionCore& target_;
  const Sequences& sequences_;
  SideModel model_;
  const size_t width_, capacity_;
  float* rows_;                       // [capacity_ + 1, width_]: those of a run; a guess's
  int32_t* ids_;                      // [capacity_]: their tokens
  const int32_t* history_ = nullptr;  // of the sequence that has run
  size_t first_row_ = 0;              // position of rows_
  size_t n_rows_ = 0;
  MeanNs guess_time_;
};

}  // namespace arn
