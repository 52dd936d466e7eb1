// GuessPolicy: how many guesses a run should verify. Weighs the tokens that they are expected to
// save against the measured time of a run with so many rows, and keeps an account of what guessing
// has cost, so that it cannot make a text slower by more than a small share.
//
// The expected tokens of k guesses that are right with probability p each, one after the other, are
// (1 - p^(k+1)) / (1 - p) (Leviathan et al., "Fast Inference from Transformers via Speculative
// Decoding", 2023). p is estimated for each kind of guesses apart.
#pragma once

#include <cstdint>

#include "runtime/speculate/drafter.h"
#include "runtime/speculate/guess_account.h"
#include "runtime/speculate/guess_odds.h"
#include "runtime/speculate/run_times.h"

namespace arn {

class GuessPolicy {
 public:
  // Says what a run with guesses meets.
  struct Situation {
    uint32_t wanted = 0;   // tokens that may follow
    uint32_t pending = 0;  // rows that run first, with guesses or without
    // The rows of a run whose guesses are not all right are pending afterwards, up to the last
    // right one: of recurrent states only those at its end are kept.
    bool has_state = false;
  };
  // Returns how many guesses of an offer to make and verify. 0: none.
  uint32_t Choose(const Offer& offer, const Situation& situation) const;
  // A run of this many rows has taken this long. REQUIRES: rows is 1 to kMaxGuesses + 1.
  void AddTime(uint32_t rows, uint64_t ns);
  // A drafter has made guesses, and read text before.
  void AddDraft(const Proposal& proposal);
  // A run of `proposed` guesses, of which `accepted` were right, is over. `before`: as for
  // Choose().
  void AddOutcome(uint32_t kind, uint32_t proposed, uint32_t accepted, const Situation& before);
  // Returns the time of a run of so many rows relative to that of one (RunTimes); 0: it is not
  // known.
  double RelativeTime(uint32_t rows) const;

 private:
  // Returns what a run of so many rows behind pending ones takes beyond those.
  double Beside(uint32_t rows, uint32_t pending) const;
  double WorstLoss(uint32_t rows, const Situation& situation) const;
  // Returns a time relative to that of one row.
  double Relative(uint64_t ns) const { return static_cast<double>(ns) / times_.mean(1); }

  GuessOdds odds_;
  RunTimes times_;
  // In runs of one row: what may be lost.
  double credit_ = kFirstCredit;
  // In runs of one row: what reading has cost and guesses have not yet saved.
  double debt_ = 0;
  uint32_t n_without_ = 0;  // runs since the last one of one row
};

}  // namespace arn
