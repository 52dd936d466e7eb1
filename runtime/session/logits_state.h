// LogitsState: which sequences have logits, and where those of a single sequence are. Moves no
// data: whoever runs, reads or writes logits tells it.
//
// With several sequences, the logits of each are in host memory. A single sequence's may be left on
// the backend, which hands them out on request (LogitsAccess); then they are
//
//   on the host     after a run that wrote them there, or after Store()
//   on the backend  after a run that left them there, or after a token chosen there
//   on both         after they were read from the backend
//
// Logits that a run wrote to the host can also be read from the backend, until the next run.
#pragma once

#include <cstdint>

#include "runtime/memory/session_plan.h"

namespace arn {

class LogitsState {
 public:
  static constexpr int32_t kNoToken = -1;

  // True if the logits of the sequence's last token exist. A sequence with a full context has none
  // once the token after it has been chosen, because that token does not run.
  // REQUIRES: sequence < kMaxSequences, here and below.
  bool Has(uint32_t sequence) const;
  void Add(uint32_t sequence);
  void Drop(uint32_t sequence);

  // A run has succeeded. `left`: its logits are on the backend. `best`: their argmax if the backend
  // computed it, else kNoToken.
  void EndRun(bool left, int32_t best) {
    place_ = left ? Place::kBackend : Place::kHost;
    best_id_ = best;
    row_ = 0;
    can_read_again_ = true;
  }
  // A run that was cancelled may have overwritten them. REQUIRES: CanReadAgain().
  void LoseHost() { place_ = Place::kBackend; }
  // A token was chosen on the backend: the logits it was chosen from, or those of the token itself
  // once it has run, are there.
  void EndStep() {
    place_ = Place::kBackend;
    best_id_ = kNoToken;
  }
  // The backend's logits have been copied to the host.
  void EndRead() { place_ = Place::kBoth; }
  // Logits are about to be written to host memory, to row 0, without a run.
  void Store() {
    place_ = Place::kHost;
    row_ = 0;
    can_read_again_ = false;
  }
  // The backend has failed: what is only there is lost.
  void LoseBackend() {
    place_ = Place::kHost;
    can_read_again_ = false;
  }
  // A run with all logits: the last token's are in this row of host memory. The backend gives out
  // the first.
  void UseRow(uint32_t row) {
    row_ = row;
    can_read_again_ = can_read_again_ && row == 0;
  }

  // True if the logits must be read from the backend before the host can use them.
  bool MustRead() const { return place_ == Place::kBackend; }
  // True if they are of the last run, and the backend can give them out if the host loses them.
  bool CanReadAgain() const { return can_read_again_; }
  // True if the backend can choose a token from them.
  bool IsOnBackend() const { return place_ != Place::kHost; }
  // Row of a single sequence in the last run's logits.
  uint32_t row() const { return row_; }
  // Returns the argmax that came instead of the logits; kNoToken if there is none.
  int32_t best_id() const { return MustRead() ? best_id_ : kNoToken; }

  // Notes that the caller wants more than the argmax: runs are to return the logits at once, so
  // that the output head does not run twice.
  void WantAll() { wants_all_ = true; }
  bool wants_all() const { return wants_all_; }

  // Between these, steps run on the backend, which owns its failures: a read that fails must not
  // switch backends under it.
  void BeginSteps() { is_stepping_ = true; }
  void EndSteps() { is_stepping_ = false; }
  bool is_stepping() const { return is_stepping_; }

 private:
  enum class Place : uint8_t { kHost, kBackend, kBoth };

  static constexpr uint32_t kWordBits = 64;
  static_assert(kMaxSequences % kWordBits == 0);

  uint64_t exist_[kMaxSequences / kWordBits] = {};  // bit per sequence
  uint32_t row_ = 0;
  int32_t best_id_ = kNoToken;
  Place place_ = Place::kHost;
  bool can_read_again_ = false;
  bool wants_all_ = false;
  bool is_stepping_ = false;
};

}  // namespace arn
