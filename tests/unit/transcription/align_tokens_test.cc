// Alignments by themselves. golden_speech_test compares times with transformers.
#include "runtime/transcription/align_tokens.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"

namespace arn {
namespace {

using testing::ElementsAre;

class AlignTokensTest : public testing::Test {
 protected:
  // Room for one more token and row than are used.
  void Make(uint32_t n_heads, uint32_t n_tokens, uint32_t n_rows) {
    weights_ = {nullptr, n_heads, n_tokens + 1, n_rows + 1, n_tokens, n_rows};
    data_.assign(size_t{n_heads} * weights_.most_tokens * weights_.stride, 0.0f);
    weights_.data = data_.data();
  }
  std::vector<uint32_t> Align(uint32_t median) {
    constexpr float kGuard = 77.0f;
    std::vector<float> floats(AlignScratch::Floats(weights_.n_tokens, weights_.n_rows) + 1, kGuard);
    std::vector<uint8_t> steps(AlignScratch::Steps(weights_.n_tokens, weights_.n_rows) + 1, 77);
    std::vector<uint32_t> rows(weights_.n_tokens, UINT32_MAX);
    AlignTokens(weights_, median,
                {{floats.data(), floats.size() - 1}, {steps.data(), steps.size() - 1}},
                {rows.data(), rows.size()});
    EXPECT_EQ(kGuard, floats.back());
    EXPECT_EQ(77, steps.back());
    return rows;
  }

  HeardWeights weights_;
  std::vector<float> data_;
};

TEST_F(AlignTokensTest, EachTokenBeginsWhereItIsHeard) {
  Make(2, 3, 30);
  for (uint32_t head = 0; head < 2; ++head) {
    for (uint32_t t = 0; t < 3; ++t) {
      for (uint32_t r = 0; r < 30; ++r) weights_.Row(head, t)[r] = r / 10 == t ? 0.09f : 0.01f;
    }
  }
  EXPECT_THAT(Align(7), ElementsAre(0, 10, 20));
}

// A row that stands out alone is what the median is for.
TEST_F(AlignTokensTest, MediansDropWhatStandsOut) {
  for (const uint32_t median : {1u, 7u}) {
    Make(1, 2, 40);
    for (uint32_t r = 0; r < 40; ++r) {
      weights_.Row(0, 0)[r] = r < 20 ? 0.05f : 0.01f;
      weights_.Row(0, 1)[r] = r < 20 ? 0.01f : 0.05f;
    }
    for (uint32_t r = 0; r < 16; r += 4) {  // normalised, a row's scale is lost
      weights_.Row(0, 0)[r] = 0.01f;
      weights_.Row(0, 1)[r] = 0.5f;
    }
    EXPECT_THAT(Align(median), ElementsAre(0, 20)) << median;
    EXPECT_NEAR(median == 7 ? 1.0f : -1.0f, weights_.Row(0, 0)[8], 1e-5f) << median;
  }
}

TEST_F(AlignTokensTest, OneToken_OrWeightsAllAlike_BeginAtTheFirstRow) {
  Make(1, 1, 9);
  for (uint32_t r = 0; r < 9; ++r) weights_.Row(0, 0)[r] = 0.1f * static_cast<float>(r);
  EXPECT_THAT(Align(7), ElementsAre(0));
  Make(1, 3, 2);
  for (const uint32_t row : Align(7)) EXPECT_LT(row, 2u);
}

// The largest sum of all paths, by trying them all.
class Best {
 public:
  explicit Best(const HeardWeights& weights) : w_(weights) {}
  double Find(uint32_t token, uint32_t row) {
    const double here = static_cast<double>(w_.Row(0, token)[row]);
    if (token == 0 && row == 0) return here;
    double best = -std::numeric_limits<double>::infinity();
    if (token > 0 && row > 0) best = std::max(best, Find(token - 1, row - 1));
    if (token > 0) best = std::max(best, Find(token - 1, row));
    if (row > 0) best = std::max(best, Find(token, row - 1));
    return best + here;
  }

 private:
  const HeardWeights& w_;
};

TEST_F(AlignTokensTest, ThePathIsTheBest) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> any(0.0f, 1.0f);
  for (int i = 0; i < 40; ++i) {
    const uint32_t n_tokens = 1 + rng() % 6, n_rows = 1 + rng() % 7;
    Make(1 + rng() % 3, n_tokens, n_rows);
    for (float& x : data_) x = any(rng);
    const std::vector<uint32_t> rows = Align(1);
    // A token's part of the path reaches to the row before that of the next one, or to it.
    double sum = 0.0;
    for (uint32_t t = 0; t < n_tokens; ++t) {
      const uint32_t end = t + 1 == n_tokens ? n_rows : rows[t + 1];
      sum += static_cast<double>(weights_.Row(0, t)[rows[t]]);
      for (uint32_t r = rows[t] + 1; r < end; ++r) {
        sum += static_cast<double>(weights_.Row(0, t)[r]);
      }
      const bool may_reach = end < n_rows && end > rows[t];
      if (may_reach) sum += std::max(0.0, static_cast<double>(weights_.Row(0, t)[end]));
    }
    EXPECT_EQ(0u, rows[0]);
    EXPECT_NEAR(Best(weights_).Find(n_tokens - 1, n_rows - 1), sum, 1e-4);
  }
}

}  // namespace
}  // namespace arn
