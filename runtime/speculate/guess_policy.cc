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
// Weighs an unknown match as so many tries, and lets earlier outcomes fade by this factor.
constexpr double kPriorTries = 1.0;
constexpr double kPrior[] = {0.3, 0.5, 0.65, 0.8, 0.9};
constexpr double kFading = 0.9;
// Extrapolates times to so many times the rows that were measured.
constexpr uint32_t kGrowth = 2;

}  // namespace

uint32_t GuessPolicy::ClassOf(uint32_t match) {
  return match <= 2 ? 0 : match <= 4 ? 1 : match <= 8 ? 2 : match <= 16 ? 3 : 4;
}

double GuessPolicy::Probability(uint32_t of_class) const {
  const Class& c = classes_[of_class];
  return (c.right + kPrior[of_class] * kPriorTries) / (c.tried + kPriorTries);
}

double GuessPolicy::RelativeTime(uint32_t rows) const {
  if (rows == 1) return 1.0;
  if (ns_[1] == 0 || most_measured_ < 2) return 0.0;
  uint32_t below = rows, above = rows;
  while (below > 1 && ns_[below] == 0) --below;
  while (above < most_measured_ && ns_[above] == 0) ++above;
  if (above > most_measured_) below = 1, above = most_measured_;
  const double at_below = ns_[below] / ns_[1], at_above = ns_[above] / ns_[1];
  if (below == above) return at_below;
  const double slope = (at_above - at_below) / (above - below);
  const double time = at_below + slope * (static_cast<double>(rows) - below);
  return Max(time, 1.0);
}

// Relative to one row; as if a row took as long as all others where nothing is known.
double GuessPolicy::WorstLoss(uint32_t rows) const {
  const double time = RelativeTime(rows);
  return time == 0.0 ? rows - 1.0 : time - 1.0;
}

uint32_t GuessPolicy::Choose(uint32_t match, uint32_t available) const {
  if (ns_[1] == 0) return 0;
  const double p = Probability(ClassOf(match));
  const uint32_t most_rows = Max(2u, kGrowth * most_measured_);
  uint32_t best = 0;
  double best_gain = 1.0, expected = 1.0, power = 1.0;
  for (uint32_t k = 1; k <= Min(available, kMaxGuesses) && k + 1 <= most_rows; ++k) {
    power *= p;
    expected += power;
    if (WorstLoss(k + 1) > credit_) break;
    const double time = RelativeTime(k + 1), gain = time == 0.0 ? expected : expected / time;
    if (gain > best_gain) best = k, best_gain = gain;
  }
  if (best == 0 && available > 0 && credit_ >= kProbeCredit + WorstLoss(2)) return 1;
  return best;
}

void GuessPolicy::AddTime(uint32_t rows, uint64_t ns) {
  const auto time = static_cast<double>(Max<uint64_t>(ns, 1));
  double& mean = ns_[rows];
  mean = mean == 0 ? time : mean + kTimeWeight * (Min(time, kMostDeviation * mean) - mean);
  if (rows == 1) {
    credit_ = Min(kMostCredit, credit_ + kCreditPerStep);
  } else {
    most_measured_ = Max(most_measured_, rows);
    last_rows_ = rows;
  }
}

void GuessPolicy::AddOutcome(uint32_t match, uint32_t proposed, uint32_t accepted) {
  Class& c = classes_[ClassOf(match)];
  c.right = kFading * c.right + accepted;
  c.tried = kFading * c.tried + Min(accepted + 1, proposed);
  credit_ = Min(kMostCredit, credit_ + 1.0 + accepted - RelativeTime(proposed + 1));
}

}  // namespace arn
