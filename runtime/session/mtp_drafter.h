// MtpDrafter: the head of the model itself that predicts one token more proposes what it would
// write (multi-token prediction: Gloeckle et al., "Better & Faster Large Language Models via
// Multi-token Prediction", 2024, arXiv:2404.19737).
//
// At a position the head reads the model's row behind the final norm and the token that follows,
// and attends to the positions before. So it is notified of every run. It keeps the rows that it
// has not read, at most those of a run and a few more: it reads them when it is asked for guesses,
// or when others need the room. Behind its guesses it goes on with its own rows, which it drops
// when the model has made the true ones.
//
// It holds one text, by its ids. If runs do not follow it (another sequence, a context shift, a
// restored session, embeddings in place of tokens), the rows in between are not at hand: the head
// starts from there, and sees nothing that lies before.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/session/run_observer.h"
#include "runtime/session/side_model.h"
#include "runtime/speculate/drafter.h"

namespace arn {

class MtpDrafter final : public Drafter, public RunObserver {
 public:
  // As DraftModel::Create(). plan: that of PlanMtp(), with room for the drafter.
  static Status Create(SessionCore* target, const SessionPlan& plan, MtpDrafter** out, Diag* diag);
  MtpDrafter(const MtpDrafter&) = delete;
  MtpDrafter& operator=(const MtpDrafter&) = delete;

  void OnRun(Span<const int32_t> before, Span<const int32_t> ids) override;

  Offer Look(Span<const int32_t> ids, uint32_t most) override;
  // Ends early if the session's call is cancelled.
  Proposal Propose(Span<const int32_t> ids, Span<int32_t> out) override;

 private:
  MtpDrafter(SessionCore* target, const SessionPlan& plan, std::byte* block);

  // Makes the text `n` tokens long, of which those before are known, and forgets all rows.
  void StartAt(size_t n);
  // Drops what does not follow from the first n tokens of the text.
  void CutTo(size_t n);
  // Reads the rows up to position `end`. REQUIRES: they are kept, and text_[end] is known.
  Status ReadTo(size_t end, LogitRows of_last);
  // Makes room for n rows more. REQUIRES: as for ReadTo(end_row()).
  Status MakeRoom(size_t n);
  // True if a token has a row in the table of embeddings.
  bool IsToken(int32_t id) const;
  size_t end_row() const { return first_row_ + n_rows_; }
  size_t next_to_read() const { return start_ + n_read_; }
  float* Row(size_t position) { return rows_ + (position - first_row_) * width_; }

  SessionCore& target_;
  SideModel model_;
  size_t width_;
  size_t capacity_;  // of rows_
  // Positions that are read with the first guess as a matter of course: that of the chosen token,
  // and of the guesses that were right. More of them are text that had not been read.
  size_t usual_rows_;
  float* rows_;           // [capacity_ + 1, width_]; the last one is of a guess
  int32_t* text_;         // [context]
  size_t length_ = 0;     // of the text
  size_t first_row_ = 0;  // position of rows_
  size_t n_rows_ = 0;
  size_t start_ = 0;   // position of the first that the head has read
  size_t n_read_ = 0;  // positions in its cache, without those of guesses
  MeanNs guess_time_, token_time_;
};

}  // namespace arn
