#include "runtime/speculate/guess_policy.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Credit that a plain step adds: guessing may cost this share of the time.
constexpr double kCreditPerStep = 0.01;
// Limits how much of what right guesses gained may be lost again.
constexpr double kMostCredit = 4.0;
// Credit left over that pays for a guess that is not expected to pay, to see whether that changed.
constexpr double kProbeCredit = 1.0;
// Sets the weight of a new time in the mean, and its largest value relative to the mean: other
// processes may interrupt a run for any time.
constexpr double kTimeWeight = 0.125;
constexpr double kMostDeviation = 2.0;
// Weighs an unknown kind as so many tries, and lets earlier outcomes fade by this factor.
constexpr double kPriorTries = 1.0;
constexpr double kPrior[kGuessKinds] = {0.3, 0.5, 0.65, 0.8, 0.9, 0.65};
constexpr double kFading = 0.9;
// Runs with guesses after which one row is measured again, unless guesses gain at least this much:
// a mean from a busy moment would make every guess look free.
constexpr uint32_t kMostRunsWithout = 16;
constexpr double kClearGain = 1.5;
// Extrapolates times to so many times the rows that were measured.
constexpr uint32_t kGrowth = 2;

}  // namespace

double GuessPolicy::Probability(uint32_t kind) const {
  const Kind& k = kinds_[kind];
  return (k.right + kPrior[kind] * kPriorTries) / (k.tried + kPriorTries);
}

double GuessPolicy::RelativeTime(uint32_t rows) const {
  if (rows == 1) return 1.0;
  if (ns_[1] == 0 || most_measured_ < 2) return 0.0;
  uint32_t below = rows, above = rows;
  while (below > 1 && ns_[below] == 0) --below;
  while (above < most_measured_ && ns_[above] == 0) ++above;
  if (above > most_measured_) below = 1, above = most_measured_;
  const double at_below = Max(1.0, ns_[below] / ns_[1]), at_above = ns_[above] / ns_[1];
  if (below == above) return at_below;
  const double slope = (at_above - at_below) / (above - below);
  const double time = at_below + slope * (static_cast<double>(rows) - below);
  return Max(time, 1.0);
}

double GuessPolicy::Beside(uint32_t rows, uint32_t pending) const {
  return Max(1.0, RelativeTime(pending + rows) - Max(1.0, RelativeTime(pending + 1)) + 1.0);
}

// Relative to one row; as if a row took as long as all others where nothing is known.
double GuessPolicy::WorstLoss(uint32_t rows, const Situation& situation) const {
  const uint32_t all = situation.pending + rows;
  if (RelativeTime(all) == 0.0) return (situation.has_state ? 2.0 : 1.0) * (all - 1.0);
  const double again = situation.has_state ? RelativeTime(all) - 1.0 : 0.0;
  return Beside(rows, situation.pending) - 1.0 + again;
}

// Reading is an investment: it happens where the rest of the text is expected to pay for it, and
// for what earlier readings still owe. So a drafter that is not worth it reads about once.
uint32_t GuessPolicy::Choose(const Offer& offer, const Situation& situation) const {
  if (ns_[1] == 0 || offer.n == 0) return 0;
  const double p = Probability(offer.kind), draft = Relative(offer.guess_ns);
  const double owed = offer.reading_ns == 0 ? 0.0 : Relative(offer.reading_ns) + debt_;
  const uint32_t pending = situation.pending, most_rows = Max(2u, kGrowth * most_measured_);
  uint32_t best = 0;
  double best_gain = 1.0, expected = 1.0, power = 1.0;
  for (uint32_t k = 1; k <= Min(offer.n, kMaxGuesses) && pending + k + 1 <= most_rows; ++k) {
    power *= p;
    expected += power;
    if (WorstLoss(k + 1, situation) + k * draft > credit_) break;
    double time = Beside(k + 1, pending) + k * draft;
    if (situation.has_state) {
      const auto redone = static_cast<uint32_t>(expected + 0.5);
      time += (1.0 - power) * (Max(1.0, RelativeTime(pending + redone + 1)) - 1.0);
    }
    const double gain = expected / time;
    if (gain > best_gain) best = k, best_gain = gain;
  }
  if (n_without_ >= kMostRunsWithout && best_gain < kClearGain) return 0;
  if (best != 0 && owed <= (1.0 - 1.0 / best_gain) * situation.wanted) return best;
  return credit_ >= kProbeCredit + WorstLoss(2, situation) + draft + owed ? 1 : 0;
}

void GuessPolicy::AddTime(uint32_t rows, uint64_t ns) {
  const auto time = static_cast<double>(Max<uint64_t>(ns, 1));
  double& mean = ns_[rows];
  mean = mean == 0 ? time : mean + kTimeWeight * (Min(time, kMostDeviation * mean) - mean);
  if (rows == 1) {
    credit_ = Min(kMostCredit, credit_ + kCreditPerStep);
    debt_ = Max(0.0, debt_ - kCreditPerStep);
    n_without_ = 0;
  } else {
    most_measured_ = Max(most_measured_, rows);
    ++n_without_;
  }
}

void GuessPolicy::AddDraft(const Proposal& proposal) {
  if (ns_[1] == 0) return;
  const double guesses = Relative(proposal.guesses_ns);
  credit_ -= guesses;
  debt_ += Relative(proposal.reading_ns) + guesses;
}

void GuessPolicy::AddOutcome(uint32_t kind, uint32_t proposed, uint32_t accepted,
                             const Situation& before) {
  Kind& k = kinds_[kind];
  k.right = kFading * k.right + accepted;
  k.tried = kFading * k.tried + Min(accepted + 1, proposed);
  double saved = 1.0 + accepted - Beside(proposed + 1, before.pending);
  if (before.has_state && accepted < proposed) {
    saved -= Max(1.0, RelativeTime(before.pending + accepted + 2)) - 1.0;
  }
  credit_ = Min(kMostCredit, credit_ + saved);
  debt_ = Max(0.0, debt_ - saved);
}

}  // namespace arn
