// Which windows are kept, written again, and left out.
#include "runtime/transcription/window_trust.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace arn {
namespace {

std::vector<int32_t> Distinct(int32_t n) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 100);
  return ids;
}

double Entropy(const std::vector<int32_t>& ids) { return TailEntropy({ids.data(), ids.size()}); }

TEST(TailEntropy, IsThatOfTheLast32) {
  EXPECT_DOUBLE_EQ(0.0, Entropy({5, 5, 5}));
  EXPECT_NEAR(std::log(2.0), Entropy({5, 7, 5, 7}), 1e-12);
  EXPECT_NEAR(0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3), Entropy({5, 5, 7, 5}), 1e-12);
  std::vector<int32_t> ids = Distinct(40);
  EXPECT_NEAR(std::log(32.0), Entropy(ids), 1e-12);
  for (size_t i = 8; i < 40; ++i) ids[i] = 1;
  EXPECT_DOUBLE_EQ(0.0, Entropy(ids));
  ids[8] = 2;
  EXPECT_GT(Entropy(ids), 0.0);
}

class JudgeWindowTest : public testing::Test {
 protected:
  Trust Judge(double logprob, double no_speech) const {
    return JudgeWindow(rules_, {ids_.data(), ids_.size()}, logprob, no_speech);
  }

  TrustRules rules_;
  std::vector<int32_t> ids_ = Distinct(40);
};

TEST_F(JudgeWindowTest, WithoutThresholds_AllAreKept) {
  ids_.assign(40, 7);
  EXPECT_EQ(Trust::kKept, Judge(-100.0, 1.0));
}

TEST_F(JudgeWindowTest, UnlikelyTokens_AreWrittenAgain_OrAreSilence) {
  rules_.logprob = -1.0f;
  EXPECT_EQ(Trust::kKept, Judge(-1.0, 1.0));
  EXPECT_EQ(Trust::kRetried, Judge(-1.01, 1.0));
  rules_.no_speech = 0.5f;
  EXPECT_EQ(Trust::kRetried, Judge(-1.01, 0.5));
  EXPECT_EQ(Trust::kSilent, Judge(-1.01, 0.51));
  EXPECT_EQ(Trust::kKept, Judge(-1.0, 0.51));
  ids_.clear();
  EXPECT_EQ(Trust::kSilent, Judge(-1.01, 0.51));
}

TEST_F(JudgeWindowTest, RepeatedTokens_AreWrittenAgain_IfThereAreEnough) {
  rules_.entropy = 2.4f;
  EXPECT_EQ(Trust::kKept, Judge(0.0, 0.0));
  ids_.assign(33, 7);
  EXPECT_EQ(Trust::kRetried, Judge(0.0, 0.0));
  ids_.assign(32, 7);
  EXPECT_EQ(Trust::kKept, Judge(0.0, 0.0));
  ids_.clear();
  EXPECT_EQ(Trust::kKept, Judge(0.0, 0.0));
}

}  // namespace
}  // namespace arn
