#include "runtime/speculate/guess_policy.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Extrapolates times to so many times the rows that were measured.
constexpr uint32_t kGrowth = 2;

}  // namespace

double GuessPolicy::RelativeTime(uint32_t rows) const {
  return times_.has(1) ? times_.Of(rows) / times_.mean(1) : rows == 1 ? 1.0 : 0.0;
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
  if (!times_.has(1) || offer.n == 0) return 0;
  const double p = odds_.Of(offer.kind), draft = Relative(offer.guess_ns);
  const double owed = offer.reading_ns == 0 ? 0.0 : Relative(offer.reading_ns) + debt_;
  const uint32_t pending = situation.pending, most_rows = Max(2u, kGrowth * times_.most());
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
  times_.Add(rows, ns);
  if (rows == 1) {
    credit_ = Min(kMostCredit, credit_ + kCreditPerStep);
    debt_ = Max(0.0, debt_ - kCreditPerStep);
    n_without_ = 0;
  } else {
    ++n_without_;
  }
}

void GuessPolicy::AddDraft(const Proposal& proposal) {
  if (!times_.has(1)) return;
  const double guesses = Relative(proposal.guesses_ns);
  credit_ -= guesses;
  debt_ += Relative(proposal.reading_ns) + guesses;
}

void GuessPolicy::AddOutcome(uint32_t kind, uint32_t proposed, uint32_t accepted,
                             const Situation& before) {
  odds_.Add(kind, proposed, accepted);
  double saved = 1.0 + accepted - Beside(proposed + 1, before.pending);
  if (before.has_state && accepted < proposed) {
    saved -= Max(1.0, RelativeTime(before.pending + accepted + 2)) - 1.0;
  }
  credit_ = Min(kMostCredit, credit_ + saved);
  debt_ = Max(0.0, debt_ - saved);
}

}  // namespace arn
