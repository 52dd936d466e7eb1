// GuessOdds: how often guesses were right lately, by their kind.
#pragma once

#include <cstdint>

#include "platform/base/arith.h"
#include "runtime/speculate/drafter.h"

namespace arn {

class GuessOdds {
 public:
  // Returns the probability that the next guess of this kind is right, if those before it were.
  double Of(uint32_t kind) const { return Of(kind, kPrior[kind]); }
  // Starts from another prior than that of the kind.
  double Of(uint32_t kind, double prior) const {
    const Kind& k = kinds_[kind];
    return (k.right + prior * kPriorTries) / (k.tried + kPriorTries);
  }
  // Forgets a little, whenever there are guesses of this kind, so that one that was wrong too often
  // is tried again.
  void Forget(uint32_t kind) {
    kinds_[kind].right *= kForgetting;
    kinds_[kind].tried *= kForgetting;
  }
  // Adds an outcome: of `proposed` guesses the first `accepted` were right, and the next was not.
  void Add(uint32_t kind, uint32_t proposed, uint32_t accepted) {
    Kind& k = kinds_[kind];
    k.right = kFading * k.right + accepted;
    k.tried = kFading * k.tried + Min(accepted + 1, proposed);
  }

 private:
  struct Kind {
    double right = 0, tried = 0;  // decayed counts
  };
  // Weighs an unknown kind as so many tries, and lets earlier outcomes fade by this factor.
  static constexpr double kPriorTries = 1.0;
  static constexpr double kPrior[kGuessKinds] = {0.3, 0.5, 0.65, 0.8, 0.9, 0.65};
  static constexpr double kFading = 0.9;
  static constexpr double kForgetting = 0.98;

  Kind kinds_[kGuessKinds];
};

}  // namespace arn
