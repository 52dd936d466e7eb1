#include "runtime/speculate/shared_guess_policy.h"

#include "platform/base/arith.h"

namespace arn {

double SharedGuessPolicy::Beyond(const Plain& plain, uint32_t more) const {
  if (!Knows(plain, more)) return 0.0;
  const double without = Max(times_.Of(plain.rows), times_.Of(plain.rows - plain.pending));
  return Max(0.0, times_.Of(plain.rows + more) - without) / times_.Of(plain.rows - plain.pending);
}

void SharedGuessPolicy::Choose(const Plain& plain, uint32_t most, size_t first,
                               Span<Share> shares) const {
  uint32_t n_offering = 0;
  for (Share& share : shares) {
    share.n = 0;
    share.next = share.most == 0 ? 0.0 : share.right;
    n_offering += share.most == 0 ? 0 : 1;
  }
  if (times_.most() == 0 || shares.empty()) return;
  // A lucky one does not take it all.
  const uint32_t most_of_one = Max(1u, 2 * most / Max(1u, n_offering));
  // Twice the guesses that were measured, at most: further times are not known well enough.
  const uint32_t known = times_.most() - Min(times_.most(), plain.rows);
  most = Min(Min(most, kMaxGuesses), Max(1u, 2 * known));
  size_t order[kMaxGuesses];
  uint32_t best = 0, n = 0;
  Plain fresh = plain;
  fresh.rows -= plain.pending;
  fresh.pending = 0;
  const double without = 1.0 + Beyond(fresh, plain.pending);
  double best_gain = 1.0, expected = 0.0, all_right = 1.0;
  while (n < most) {
    size_t at = first % shares.size();
    for (size_t i = 0, s = at; i < shares.size(); ++i, s = (s + 1) % shares.size()) {
      if (shares[s].next > shares[at].next) at = s;
    }
    Share& share = shares[at];
    if (share.next == 0.0 || WorstLoss(plain, n + 1) > credit_) break;
    expected += share.next;
    all_right *= share.right;
    order[n++] = at;
    const bool has_more = ++share.n < Min(share.most, most_of_one);
    share.next = has_more ? share.next * share.right : 0.0;
    double time = without + Beyond(plain, n);
    if (plain.has_state) {
      time += (1.0 - all_right) * Beyond(plain, static_cast<uint32_t>(expected + 0.5));
    }
    const double gain = (1.0 + expected / plain.tokens) * without / time;
    if (gain > best_gain) best = n, best_gain = gain;
  }
  if (best == 0 && n != 0 && credit_ >= kProbeCredit + WorstLoss(plain, 1)) best = 1;
  if (n_without_ >= kMostRunsWithout && best_gain < kClearGain) best = 0;
  for (Share& share : shares) share.n = 0;
  for (uint32_t i = 0; i < best; ++i) ++shares[order[i]].n;
}

void SharedGuessPolicy::AddTime(uint32_t rows, uint32_t guesses, uint64_t ns) {
  if (rows <= kMaxGuesses + 1) times_.Add(rows, ns);
  if (guesses != 0) {
    ++n_without_;
    return;
  }
  n_without_ = 0;
  credit_ = Min(kMostCredit, credit_ + kCreditPerStep);
}

void SharedGuessPolicy::AddOutcome(const Plain& plain, uint32_t proposed, uint32_t accepted,
                                   uint32_t again) {
  const double gained = static_cast<double>(accepted) / plain.tokens;
  const double lost = Beyond(plain, proposed) + (again == 0 ? 0.0 : Beyond(plain, again));
  credit_ = Min(kMostCredit, credit_ + gained - lost);
}

}  // namespace arn
