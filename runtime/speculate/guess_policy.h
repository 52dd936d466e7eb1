// GuessPolicy: how many guesses a run should verify. Weighs the tokens that they are expected to
// save against the measured time of a run with so many rows, and keeps an account of what guessing
// has cost, so that it cannot make a text slower by more than a small share.
//
// The expected tokens of k guesses that are right with probability p each, one after the other, are
// (1 - p^(k+1)) / (1 - p) (Leviathan et al., "Fast Inference from Transformers via Speculative
// Decoding", 2023). p is estimated for each length of match apart.
#pragma once

#include <cstdint>

namespace arn {

inline constexpr uint32_t kMaxGuesses = 63;

class GuessPolicy {
 public:
  // Returns how many of `available` guesses to verify, found by a match of this many tokens. 0:
  // run the token alone.
  uint32_t Choose(uint32_t match, uint32_t available) const;
  // A run of one row, or of a token and its guesses, has taken this long. REQUIRES: rows is 1 to
  // kMaxGuesses + 1.
  void AddTime(uint32_t rows, uint64_t ns);
  // A run of `proposed` guesses, of which `accepted` were right, is over.
  void AddOutcome(uint32_t match, uint32_t proposed, uint32_t accepted);
  // Returns the time of a run of so many rows relative to that of one: measured, or between the
  // nearest measured ones; beyond them along the line through one row and the largest; 0: nothing
  // is known.
  double RelativeTime(uint32_t rows) const;

 private:
  static constexpr uint32_t kClasses = 5;
  struct Class {
    double right = 0, tried = 0;  // decayed counts
  };
  static uint32_t ClassOf(uint32_t match);
  double Probability(uint32_t of_class) const;
  double WorstLoss(uint32_t rows) const;

  Class classes_[kClasses];
  double ns_[kMaxGuesses + 2] = {};  // mean by rows; 0: not measured
  uint32_t most_measured_ = 0;       // rows
  // In runs of one row: what may be lost.
  double credit_ = kFirstCredit;
  uint32_t last_rows_ = 0;  // of the last run with guesses

  static constexpr double kFirstCredit = 1.5;
};

}  // namespace arn
