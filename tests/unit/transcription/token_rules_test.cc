// The rules for times, one at a time. golden_speech_test compares whole windows with transformers.
#include "runtime/transcription/token_rules.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace arn {
namespace {

constexpr int32_t kEnd = 20, kNoTimestamps = 29, kZero = 30;
constexpr uint32_t kVocab = 40;

class TokenRulesTest : public testing::Test {
 protected:
  TokenRulesTest() : logits_(kVocab, 0.0f) {
    rules_.vocab = kVocab;
    rules_.end_id = kEnd;
    rules_.no_timestamps_id = kNoTimestamps;
    rules_.suppressed = {suppressed_, 2};
  }
  int32_t After(const std::vector<int32_t>& chosen) const {
    return ChooseToken(rules_, {chosen.data(), chosen.size()}, logits_.data());
  }

  TokenRules rules_;
  uint32_t suppressed_[2] = {};
  std::vector<float> logits_;
};

TEST_F(TokenRulesTest, First_IsATime_NotTooLate) {
  logits_[5] = 50.0f;
  logits_[kZero + 4] = 3.0f;
  logits_[kZero + 2] = 2.0f;
  EXPECT_EQ(kZero + 4, After({}));
  rules_.latest_first_id = kZero + 3;
  EXPECT_EQ(kZero + 2, After({}));
}

TEST_F(TokenRulesTest, AfterTheFirstTimeAndAfterPairs_ComesNoTime) {
  logits_[kZero + 4] = 50.0f;
  logits_[5] = 1.0f;
  EXPECT_EQ(5, After({kZero}));
  EXPECT_EQ(5, After({kZero, 7, kZero + 1, kZero + 1}));
  logits_[kEnd] = 2.0f;
  EXPECT_EQ(kEnd, After({kZero}));
}

TEST_F(TokenRulesTest, AfterTextAndATime_ComesATimeOrTheEnd) {
  logits_[5] = 50.0f;
  logits_[kZero + 4] = 3.0f;
  EXPECT_EQ(kZero + 4, After({kZero, 7, kZero + 3}));
  logits_[kEnd] = 20.0f;
  EXPECT_EQ(kEnd, After({kZero, 7, kZero + 3}));
}

TEST_F(TokenRulesTest, Times_DoNotDecrease) {
  for (int32_t t = 0; t < 10; ++t) logits_[static_cast<size_t>(kZero + t)] = 20.0f - 1.0f * t;
  EXPECT_EQ(kZero + 3, After({kZero, 7, kZero + 3}));  // the same time begins the next segment
  EXPECT_EQ(kZero + 4, After({kZero + 3, 7}));         // a segment ends after its beginning
  EXPECT_EQ(kZero + 6, After({kZero, 7, kZero + 5, kZero + 5, 8, 9}));
}

TEST_F(TokenRulesTest, TimesTogether_AgainstTheBestOther) {
  // Nine times of logit 0 are as likely as one of ln 9.
  logits_[5] = std::log(9.0f) + 0.01f;
  EXPECT_EQ(5, After({kZero, 7}));
  logits_[5] = std::log(9.0f) - 0.01f;
  EXPECT_EQ(kZero + 1, After({kZero, 7}));
}

TEST_F(TokenRulesTest, Suppressed_AreNotChosen_NorCountedAmongTimes) {
  logits_[5] = 9.0f;
  logits_[6] = 8.0f;
  suppressed_[0] = 1u << 5;
  EXPECT_EQ(6, After({kZero, 7}));
  logits_[kNoTimestamps] = 10.0f;
  EXPECT_EQ(6, After({kZero, 7}));
  const int32_t at_begin[] = {6};
  rules_.suppressed_at_begin = at_begin;
  rules_.has_timestamps = false;
  logits_[kNoTimestamps] = 0.0f;
  logits_[8] = 1.0f;
  EXPECT_EQ(8, After({}));
  EXPECT_EQ(6, After({8}));
}

// Of all that the rules leave: text from the end on, and times from 0.06 s on.
TEST_F(TokenRulesTest, Rated_ByItsShareOfWhatIsLeft) {
  const std::vector<int32_t> chosen = {kZero, 7, kZero + 3};
  logits_[kEnd] = 4.0f;
  logits_[kZero + 5] = 3.0f;
  logits_[5] = 50.0f;  // not left
  suppressed_[0] = 1u << 22;
  const Span<const int32_t> after(chosen.data(), chosen.size());
  const RatedToken end = RateToken(rules_, after, logits_.data(), 0.0f, nullptr);
  EXPECT_EQ(kEnd, end.id);
  // The ids 20 to 28 but 22, and the times 33 to 39.
  const double sum = std::exp(4.0) + std::exp(3.0) + 7 + 6;
  EXPECT_NEAR(4.0 - std::log(sum), end.logprob, 1e-12);
  // Where times win, they alone are left.
  logits_[kEnd] = 0.0f;
  const RatedToken time = RateToken(rules_, after, logits_.data(), 0.0f, nullptr);
  EXPECT_EQ(kZero + 5, time.id);
  EXPECT_NEAR(3.0 - std::log(std::exp(3.0) + 6), time.logprob, 1e-12);
  suppressed_[0] = suppressed_[1] = UINT32_MAX;
  EXPECT_EQ(kEnd, RateToken(rules_, after, logits_.data(), 0.5f, nullptr).id);
}

TEST_F(TokenRulesTest, Drawn_AsOftenAsTheTemperatureSays) {
  const int32_t first[] = {kZero};  // times are not left
  for (size_t id = 0; id < 29; ++id) logits_[id] = -90.0f;
  logits_[3] = 1.0f;
  logits_[8] = 0.0f;
  logits_[kEnd] = -0.5f;
  Random random(5);
  constexpr int kDraws = 20000;
  int counts[kVocab] = {};
  for (int i = 0; i < kDraws; ++i) {
    const RatedToken drawn = RateToken(rules_, first, logits_.data(), 0.5f, &random);
    ++counts[drawn.id];
    // Its log-probability is that of temperature 1.
    const double sum = std::exp(1.0) + 1.0 + std::exp(-0.5);
    ASSERT_NEAR(static_cast<double>(logits_[static_cast<size_t>(drawn.id)]) - std::log(sum),
                drawn.logprob, 1e-12);
  }
  const double weights[] = {std::exp(2.0), 1.0, std::exp(-1.0)};
  const double sum = weights[0] + weights[1] + weights[2];
  const int32_t ids[] = {3, 8, kEnd};
  double chi_square = 0.0;
  for (size_t i = 0; i < 3; ++i) {
    const double expected = kDraws * weights[i] / sum;
    chi_square += std::pow(counts[ids[i]] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 13.8);  // 2 degrees of freedom: 1 in 1,000
  EXPECT_EQ(kDraws, counts[3] + counts[8] + counts[kEnd]);
}

TEST_F(TokenRulesTest, NothingAllowed_Ends) {
  suppressed_[0] = suppressed_[1] = UINT32_MAX;
  EXPECT_EQ(kEnd, After({}));
  suppressed_[0] = suppressed_[1] = 0;
  for (float& logit : logits_) logit = NAN;
  EXPECT_EQ(kEnd, After({kZero, 7}));
}

}  // namespace
}  // namespace arn
