// SharedGuessPolicy: how many guesses a run verifies that several sequences share, and whose. Each
// further guess goes to the sequence where it is likeliest to be right, up to twice an equal part;
// there are as many as make the most tokens for the time of the run. An account keeps wrong guesses
// cheap, as GuessPolicy's.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/speculate/guess_account.h"
#include "runtime/speculate/run_times.h"

namespace arn {

class SharedGuessPolicy {
 public:
  // A run without guesses.
  struct Plain {
    uint32_t rows = 0;
    uint32_t pending = 0;    // part of them: they run again
    uint32_t tokens = 0;     // that are chosen after it
    bool has_state = false;  // rows run again behind a wrong guess (GuessPolicy::Situation)
  };
  // Describes the guesses of one sequence.
  struct Share {
    uint32_t most = 0;  // that it has
    double right = 0;   // probability that one is right, if those before it were
    uint32_t n = 0;     // that are to be verified
    double next = 0;    // scratch: probability that one more is right with all before it
  };
  // Sets n of each share, `most` together at most. Of equals the one at `first` comes first.
  void Choose(const Plain& plain, uint32_t most, size_t first, Span<Share> shares) const;
  // A run of this many rows, `guesses` of which were guesses, has taken this long.
  void AddTime(uint32_t rows, uint32_t guesses, uint64_t ns);
  // Adds an outcome: of so many guesses in a run so many were right; `again` rows will run again.
  void AddOutcome(const Plain& plain, uint32_t proposed, uint32_t accepted, uint32_t again);

 private:
  bool Knows(const Plain& plain, uint32_t more) const {
    return times_.Of(plain.rows + more) != 0.0 && times_.Of(plain.rows - plain.pending) != 0.0;
  }
  // Returns what so many more rows take, in plain runs without pending rows; 0 if it is not known.
  double Beyond(const Plain& plain, uint32_t more) const;
  // As if each row took as long as all others where nothing is known.
  double WorstLoss(const Plain& plain, uint32_t more) const {
    const double once = Knows(plain, more) ? Beyond(plain, more) : more;
    return plain.has_state ? 2.0 * once : once;
  }

  RunTimes times_;
  double credit_ = kFirstCredit;  // plain runs that may be lost
  uint32_t n_without_ = 0;        // runs since the last plain one
};

}  // namespace arn
