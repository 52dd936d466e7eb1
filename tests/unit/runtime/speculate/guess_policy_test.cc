// GuessPolicy on simulated machines and texts.
#include "runtime/speculate/guess_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace arn {
namespace {

// Time of a run by its rows: `per_row` of one row's time for each further row, with noise.
struct Machine {
  double per_row = 0;
  double noise = 0;
  uint32_t n_slow = 0;  // the first runs take twice as long: other processes run
  std::mt19937 rng{5};

  uint64_t Time(uint32_t rows) {
    const double swing = 1.0 + noise * (static_cast<double>(rng() % 2001) / 1000.0 - 1.0);
    const double load = n_slow > 0 ? 2.0 : 1.0;
    if (n_slow > 0) --n_slow;
    return static_cast<uint64_t>(load * 1e6 * (1.0 + per_row * (rows - 1)) * swing);
  }
};

struct Outcome {
  double speed = 0;  // tokens per time of one row
  uint64_t proposed = 0, accepted = 0;
  uint32_t n_readings = 0;
};

// Time of one row.
constexpr double kRowNs = 1e6;

// Times of a draft model relative to one row: of a guess, and of a token that it reads.
struct DraftTimes {
  double guess = 0, token = 0;
};

Offer OfMatch(uint32_t match, uint32_t n) {
  Offer offer;
  offer.n = n;
  offer.kind = match <= 2 ? 0 : match <= 4 ? 1 : match <= 8 ? 2 : match <= 16 ? 3 : 4;
  return offer;
}

// Texts of `per_text` tokens each, n tokens together, in which guesses are right with probability
// p(token). Before each text is a prompt of n_prompt tokens, which a draft model has to read. With
// a state, rows up to the last right guess run again if another one was wrong.
template <typename Probability>
Outcome SimulateTexts(Machine machine, uint32_t n, uint32_t per_text, uint32_t n_prompt,
                      const Offer& what, const DraftTimes& draft, const Probability& p,
                      bool has_state = false) {
  GuessPolicy policy;
  std::mt19937 rng(7);
  Outcome out;
  double ns = 0;
  uint32_t done = 0, unread = n_prompt, end = per_text, pending = 0;
  bool is_known = false;  // what the draft takes
  while (done < n) {
    if (done >= end) unread += n_prompt, end += per_text;
    Offer offer = what;
    if (is_known) {
      offer.guess_ns = static_cast<uint64_t>(draft.guess * kRowNs);
      if (unread > 2) offer.reading_ns = static_cast<uint64_t>(draft.token * unread * kRowNs);
    }
    const GuessPolicy::Situation before{end > done ? end - done : 1, pending, has_state};
    const uint32_t k = pending + 1 >= kMaxGuesses ? 0 : policy.Choose(offer, before);
    EXPECT_LE(k, offer.n);
    if (k > 0) {
      Proposal proposal;
      proposal.n = k;
      proposal.guesses_ns = static_cast<uint64_t>(draft.guess * k * kRowNs);
      if (unread > 2) proposal.reading_ns = static_cast<uint64_t>(draft.token * unread * kRowNs);
      if (unread > 2) ++out.n_readings;
      policy.AddDraft(proposal);
      ns += static_cast<double>(proposal.guesses_ns + proposal.reading_ns);
      unread = 0;
      is_known = true;
    }
    const uint64_t time = machine.Time(pending + 1 + k);
    policy.AddTime(pending + 1 + k, time);
    ns += static_cast<double>(time);
    uint32_t accepted = 0;
    while (accepted < k && rng() % 10000 < 10000 * p(done + accepted)) ++accepted;
    if (k > 0) policy.AddOutcome(offer.kind, k, accepted, before);
    pending = has_state && accepted < k ? pending + 1 + accepted : 0;
    if (k == 0) ++unread;
    out.proposed += k;
    out.accepted += accepted;
    done += 1 + accepted;
  }
  out.speed = done * kRowNs / ns;
  return out;
}

// A text of n tokens with guesses of n-grams.
template <typename Probability>
Outcome Simulate(const Machine& machine, uint32_t n, uint32_t match, uint32_t available,
                 const Probability& p) {
  return SimulateTexts(machine, n, n, 0, OfMatch(match, available), {}, p);
}

Offer OfModel(uint32_t n) {
  Offer offer;
  offer.n = n;
  offer.kind = kModelKind;
  return offer;
}

TEST(GuessPolicyTest, BeforeAnyMeasurement_NothingIsGuessed) {
  EXPECT_EQ(0u, GuessPolicy().Choose(OfMatch(32, 15), {100, 0, false}));
}

// Whatever a row costs and however long the match, wrong guesses cost at most 2 %.
TEST(GuessPolicyTest, GuessesThatAreAlwaysWrong_CostLittle) {
  for (const double per_row : {0.02, 0.1, 0.3, 1.0}) {
    for (const uint32_t match : {2u, 5u, 32u}) {
      for (const uint32_t n : {256u, 2000u}) {
        const Outcome out = Simulate({per_row, 0}, n, match, 15, [](uint32_t) { return 0.0; });
        EXPECT_GE(out.speed, 0.98) << per_row << " per row, match " << match << ", " << n;
      }
    }
  }
}

// Guesses that are right now and then, at the border of what pays.
TEST(GuessPolicyTest, AnyShareOfRightGuesses_NeverMuchSlower) {
  for (const double per_row : {0.05, 0.15, 0.4, 1.0}) {
    for (const double p : {0.02, 0.1, 0.2, 0.4, 0.6}) {
      const Outcome out = Simulate({per_row, 0.1}, 3000, 3, 15, [p](uint32_t) { return p; });
      EXPECT_GE(out.speed, 0.975) << per_row << " per row, right " << p;
    }
  }
}

TEST(GuessPolicyTest, CopiedText_IsMuchFaster) {
  const auto always = [](uint32_t) { return 1.0; };
  EXPECT_GT(Simulate({0.02, 0.05}, 2000, 32, 15, always).speed, 9.0);
  EXPECT_GT(Simulate({0.1, 0.05}, 2000, 32, 15, always).speed, 5.0);
  EXPECT_GT(Simulate({0.3, 0.05}, 2000, 32, 15, always).speed, 2.0);
  // Where rows cost as much alone, there is nothing to gain and little to lose.
  EXPECT_GT(Simulate({1.0, 0.05}, 2000, 32, 15, always).speed, 0.97);
}

// Text that is copied only in its second half: guessing comes back.
TEST(GuessPolicyTest, TextThatBeginsToRepeat_IsFoundOut) {
  const Outcome out =
      Simulate({0.05, 0.05}, 4000, 5, 15, [](uint32_t token) { return token < 2000 ? 0.0 : 0.98; });
  EXPECT_GT(out.speed, 1.6);  // 2 is infinitely fast in the second half
}

// The time of the draft is in the account, whatever it is.
TEST(GuessPolicyTest, DraftThatIsAlwaysWrong_CostsLittle) {
  for (const double per_row : {0.02, 0.1, 0.3, 1.0}) {
    for (const double guess : {0.02, 0.1, 0.3, 1.0}) {
      for (const uint32_t n : {256u, 2000u}) {
        const Outcome out = SimulateTexts({per_row, 0}, n, n, 0, OfModel(15), {guess, guess / 10},
                                          [](uint32_t) { return 0.0; });
        EXPECT_GE(out.speed, 0.98) << per_row << " per row, " << guess << " a guess, " << n;
      }
    }
  }
}

// A step without guesses that was slow once does not make guesses look free ever after.
TEST(GuessPolicyTest, FirstStepsThatAreSlow_AreForgotten) {
  const auto never = [](uint32_t) { return 0.0; };
  for (const double per_row : {0.05, 0.3}) {
    const Machine machine{per_row, 0, 3};
    EXPECT_GE(SimulateTexts(machine, 2000, 2000, 0, OfModel(15), {0.05, 0.01}, never).speed, 0.975);
    EXPECT_GE(Simulate(machine, 2000, 32, 15, never).speed, 0.975);
  }
}

// Rows that run again are in the account, too.
TEST(GuessPolicyTest, States_AnyShareOfRightGuesses_NeverMuchSlower) {
  for (const double per_row : {0.02, 0.1, 0.3, 1.0}) {
    for (const double p : {0.0, 0.1, 0.3, 0.6}) {
      const auto right = [p](uint32_t) { return p; };
      EXPECT_GE(SimulateTexts({per_row, 0}, 3000, 3000, 0, OfMatch(5, 15), {}, right, true).speed,
                0.98)
          << per_row << " per row, right " << p;
      EXPECT_GE(
          SimulateTexts({per_row, 0}, 3000, 3000, 0, OfModel(15), {0.1, 0.01}, right, true).speed,
          0.98)
          << per_row << " per row, right " << p << ", a draft";
    }
  }
}

TEST(GuessPolicyTest, States_CopiedText_IsMuchFaster) {
  const auto mostly = [](uint32_t token) { return token % 30 == 0 ? 0.0 : 1.0; };
  const auto with = [&](double per_row) {
    return SimulateTexts({per_row, 0.05}, 2000, 2000, 0, OfMatch(32, 15), {}, mostly, true).speed;
  };
  EXPECT_GT(with(0.02), 5.0);
  EXPECT_GT(with(0.1), 3.0);
}

// A prompt is read once; texts after it are not, because reading has not paid.
TEST(GuessPolicyTest, DraftThatIsAlwaysWrong_ReadsOnePromptOfMany) {
  const auto never = [](uint32_t) { return 0.0; };
  const Outcome out = SimulateTexts({0.1, 0}, 5000, 50, 500, OfModel(15), {0.1, 0.02}, never);
  EXPECT_EQ(1u, out.n_readings);
  EXPECT_GE(out.speed, 0.98);
}

TEST(GuessPolicyTest, DraftThatIsRight_ReadsEveryPrompt) {
  const auto often = [](uint32_t token) { return token % 5 == 0 ? 0.0 : 1.0; };
  const Outcome out = SimulateTexts({0.05, 0.05}, 2000, 100, 100, OfModel(15), {0.1, 0.01}, often);
  EXPECT_GE(out.n_readings, 20u);
  EXPECT_GT(out.speed, 2.0);
}

// What a guess costs decides how many are made.
TEST(GuessPolicyTest, DearDraft_MakesFewerGuesses) {
  const auto often = [](uint32_t token) { return token % 5 == 0 ? 0.0 : 1.0; };
  const auto with = [&](double guess) {
    return SimulateTexts({0.05, 0.05}, 3000, 3000, 0, OfModel(15), {guess, guess / 10}, often);
  };
  const Outcome cheap = with(0.02), dear = with(0.4), useless = with(1.2);
  EXPECT_GT(cheap.speed, 2.5);
  EXPECT_GT(dear.speed, 1.1);
  EXPECT_GT(cheap.speed, dear.speed + 0.5);
  EXPECT_GE(useless.speed, 0.98);
  EXPECT_LT(useless.proposed, cheap.proposed / 4);
}

TEST(GuessPolicyTest, RelativeTime_MeasuredBetweenAndBeyond) {
  GuessPolicy policy;
  EXPECT_EQ(0.0, policy.RelativeTime(4));
  policy.AddTime(1, 1000);
  EXPECT_EQ(0.0, policy.RelativeTime(4));
  policy.AddTime(4, 1600);
  EXPECT_DOUBLE_EQ(1.6, policy.RelativeTime(4));
  EXPECT_DOUBLE_EQ(1.2, policy.RelativeTime(2));
  EXPECT_DOUBLE_EQ(2.4, policy.RelativeTime(8));
  policy.AddTime(8, 1600);
  EXPECT_DOUBLE_EQ(1.6, policy.RelativeTime(6));
  // A run that another process interrupted counts for at most twice the mean.
  policy.AddTime(8, 1000000);
  EXPECT_LT(policy.RelativeTime(8), 1.9);
}

}  // namespace
}  // namespace arn
