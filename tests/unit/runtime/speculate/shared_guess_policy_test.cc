// SharedGuessPolicy on simulated machines and texts.
#include "runtime/speculate/shared_guess_policy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/speculate/guess_odds.h"

namespace arn {
namespace {

constexpr uint32_t kKind = 2;

// Time of a run: that of one row, until so many rows that each takes as long as the others.
struct Machine {
  double per_row = 0;   // of one row's time, for each further row
  uint32_t n_free = 1;  // rows that take the time of one
  uint64_t Time(uint32_t rows) const {
    const uint32_t more = rows > n_free ? rows - n_free : 0;
    return static_cast<uint64_t>(1e6 * (1.0 + per_row * more));
  }
};

struct Outcome {
  double speed = 0;  // relative to steps without guesses
  std::vector<uint64_t> proposed, accepted;
};

// `steps` steps of texts whose guesses are right with probability right[i].
Outcome Simulate(const Machine& machine, uint32_t steps, const std::vector<double>& right,
                 bool has_state = false) {
  const size_t n = right.size();
  SharedGuessPolicy policy;
  std::vector<GuessOdds> odds(n);
  GuessOdds all;
  std::vector<uint32_t> pending(n);
  std::mt19937 rng(3);
  Outcome out;
  out.proposed.resize(n);
  out.accepted.resize(n);
  double ns = 0;
  uint64_t tokens = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    SharedGuessPolicy::Plain plain;
    plain.tokens = static_cast<uint32_t>(n);
    plain.has_state = has_state;
    std::vector<SharedGuessPolicy::Share> shares(n);
    for (size_t i = 0; i < n; ++i) {
      plain.rows += 1 + pending[i];
      plain.pending += pending[i];
      shares[i].most = 15;
      odds[i].Forget(kKind);
      shares[i].right = odds[i].Of(kKind, all.Of(kKind));
    }
    policy.Choose(plain, 15, step, {shares.data(), n});
    uint32_t guesses = 0, n_right = 0, again = 0;
    for (const auto& share : shares) guesses += share.n;
    EXPECT_LE(guesses, 15u);
    const uint64_t time = machine.Time(plain.rows + guesses);
    policy.AddTime(plain.rows + guesses, guesses, time);
    ns += static_cast<double>(time);
    for (size_t i = 0; i < n; ++i) {
      uint32_t accepted = 0;
      while (accepted < shares[i].n && rng() % 10000 < 10000 * right[i]) ++accepted;
      if (shares[i].n != 0) odds[i].Add(kKind, shares[i].n, accepted);
      if (shares[i].n != 0) all.Add(kKind, shares[i].n, accepted);
      pending[i] = has_state && accepted < shares[i].n ? pending[i] + 1 + accepted : 0;
      again += pending[i];
      n_right += accepted;
      tokens += 1 + accepted;
      out.proposed[i] += shares[i].n;
      out.accepted[i] += accepted;
    }
    if (guesses != 0) policy.AddOutcome(plain, guesses, n_right, again);
  }
  const double plain_ns = static_cast<double>(machine.Time(static_cast<uint32_t>(n)));
  out.speed = static_cast<double>(tokens) / static_cast<double>(n) * plain_ns / ns;
  return out;
}

TEST(SharedGuessPolicyTest, BeforeAnyMeasurement_NothingIsGuessed) {
  SharedGuessPolicy::Share share;
  share.most = 15;
  share.right = 0.9;
  SharedGuessPolicy policy;
  const SharedGuessPolicy::Plain plain{1, 0, 1, false};
  policy.Choose(plain, 15, 0, {&share, 1});
  EXPECT_EQ(0u, share.n);
  policy.AddTime(1, 0, 1000);
  policy.Choose(plain, 15, 0, {&share, 1});
  EXPECT_EQ(1u, share.n) << "as long as nothing is known of two rows";
}

// However many texts there are and whatever a row costs, wrong guesses cost at most 2 %.
TEST(SharedGuessPolicyTest, GuessesThatAreAlwaysWrong_CostLittle) {
  for (const size_t n : {1u, 4u, 8u, 16u}) {
    for (const double per_row : {0.02, 0.1, 0.3, 1.0}) {
      for (const uint32_t steps : {256u, 2000u}) {
        for (const bool has_state : {false, true}) {
          const Outcome out = Simulate({per_row, 1}, steps, std::vector<double>(n, 0.0), has_state);
          EXPECT_GE(out.speed, 0.98) << n << " texts, " << per_row << " per row, " << steps;
        }
      }
    }
  }
}

TEST(SharedGuessPolicyTest, AnyShareOfRightGuesses_NeverMuchSlower) {
  for (const size_t n : {1u, 4u, 8u}) {
    for (const double per_row : {0.05, 0.15, 0.4, 1.0}) {
      for (const double p : {0.05, 0.2, 0.4, 0.6, 0.8}) {
        for (const bool has_state : {false, true}) {
          const Outcome out = Simulate({per_row, 2}, 2000, std::vector<double>(n, p), has_state);
          EXPECT_GE(out.speed, 0.975) << n << " texts, " << per_row << " per row, right " << p
                                      << (has_state ? ", a state" : "");
        }
      }
    }
  }
}

TEST(SharedGuessPolicyTest, CopiedTexts_AreFaster) {
  const auto speed = [](size_t n, double per_row, uint32_t n_free) {
    return Simulate({per_row, n_free}, 1000, std::vector<double>(n, 1.0)).speed;
  };
  EXPECT_GT(speed(1, 0.02, 1), 9.0);
  EXPECT_GT(speed(1, 0.1, 8), 6.0);
  EXPECT_GT(speed(4, 0.1, 8), 2.0);
  EXPECT_GT(speed(8, 0.1, 8), 1.1);  // 1.15 is the most
  // Where rows cost as much alone, there is nothing to gain and little to lose.
  EXPECT_GT(speed(8, 1.0, 1), 0.97);
}

// Guesses go where they are right; texts that are alike get about as many.
TEST(SharedGuessPolicyTest, Guesses_GoWhereTheyAreRight) {
  const Outcome mixed = Simulate({0.1, 8}, 1000, {1.0, 0.0, 1.0, 0.0});
  EXPECT_GT(mixed.accepted[0], 1500u);
  EXPECT_LT(mixed.proposed[1] + mixed.proposed[3], 60u);
  const Outcome alike = Simulate({0.1, 8}, 1000, {0.9, 0.9, 0.9, 0.9});
  uint64_t all = 0;
  for (const uint64_t n : alike.accepted) all += n;
  for (const uint64_t n : alike.accepted) EXPECT_GT(n, all / 4 / 2);
}

}  // namespace
}  // namespace arn
