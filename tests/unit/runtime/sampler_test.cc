#include "runtime/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "runtime/backends.h"

namespace arn {
namespace {

class SamplerTest : public testing::TestWithParam<BackendId> {
 protected:
  void Use(uint32_t vocab, const SamplingOptions& options) {
    Layout layout;
    SamplerPlan plan;
    ASSERT_EQ(Status::kOk, PlanSampler(vocab, &layout, &plan));
    bytes_.assign(layout.RegionBytes(Region::kIo), std::byte{0});
    Memory memory;
    memory.region[static_cast<uint32_t>(Region::kIo)] = {bytes_.data(), bytes_.size()};
    sampler_.Init(FindLogitsOps(GetParam()), plan, memory, vocab);
    sampler_.Configure(options);
  }

  // How often each id was drawn.
  std::vector<int> Draw(const std::vector<float>& logits, int draws) {
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(sampler_.Sample(logits.data()))];
    return counts;
  }

  std::vector<std::byte> bytes_;
  Sampler sampler_;
};

// The distribution by the definitions of transformers' warpers, in double, sorted out naively.
std::vector<double> Expected(const std::vector<float>& logits, const SamplingOptions& o) {
  const size_t n = logits.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  size_t kept = o.top_k > 0 ? std::min<size_t>(o.top_k, n) : n;
  std::vector<double> p(n, 0.0);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    const double below = static_cast<double>(logits[order[0]] - logits[order[i]]);
    p[order[i]] = std::exp(-below / static_cast<double>(o.temperature));
    total += p[order[i]];
  }
  double mass = 0;
  for (size_t i = 0; i < kept; ++i) {
    const double before = mass;
    mass += p[order[i]];
    if (i > 0 && before >= static_cast<double>(o.top_p) * total) p[order[i]] = 0;
  }
  const double best = p[order[0]];
  for (double& x : p) {
    if (x < static_cast<double>(o.min_p) * best) x = 0;
  }
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

TEST_P(SamplerTest, Greedy_TakesTheLargestAndTheFirstAmongEquals) {
  Use(5, SamplingOptions());
  const std::vector<float> logits = {1, 3, 2, 3, -1};
  EXPECT_EQ(1, sampler_.Sample(logits.data()));
}

TEST_P(SamplerTest, Draws_FollowTheDistribution) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  const SamplingOptions cases[] = {{1.0f, 0, 1.0f, 0.0f, 1},   {0.7f, 5, 1.0f, 0.0f, 2},
                                   {1.3f, 0, 0.8f, 0.0f, 3},   {1.0f, 0, 1.0f, 0.1f, 4},
                                   {0.9f, 20, 0.9f, 0.05f, 5}, {2.0f, 1, 0.5f, 0.5f, 6}};
  for (const SamplingOptions& options : cases) {
    std::vector<float> logits(61);
    for (float& x : logits) x = normal(random);
    Use(61, options);
    constexpr int kDraws = 40000;
    const std::vector<int> counts = Draw(logits, kDraws);
    const std::vector<double> expected = Expected(logits, options);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (expected[i] == 0) {
        EXPECT_EQ(0, counts[i]) << i;
        continue;
      }
      const double sigma = std::sqrt(expected[i] * (1 - expected[i]) * kDraws);
      EXPECT_NEAR(expected[i] * kDraws, counts[i], 5 * sigma + 1) << i << " seed " << options.seed;
    }
  }
}

// Larger than the blocks that top-k scans by, and with many equal logits.
TEST_P(SamplerTest, TopK_OfALargeVocabulary_IsTheRealTopK) {
  constexpr uint32_t kVocab = 10007;
  std::vector<float> logits(kVocab);
  std::mt19937 random(9);
  for (float& x : logits) x = static_cast<float>(random() % 500) * 0.01f;
  Use(kVocab, {1.0f, 50, 1.0f, 0.0f, 1});
  std::vector<uint32_t> order(kVocab);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  const std::set<uint32_t> best(order.begin(), order.begin() + 50);
  std::set<uint32_t> drawn;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t id = static_cast<uint32_t>(sampler_.Sample(logits.data()));
    ASSERT_EQ(1u, best.count(id));
    drawn.insert(id);
  }
  EXPECT_EQ(50u, drawn.size());
}

TEST_P(SamplerTest, SameSeed_GivesTheSameTokens) {
  std::vector<float> logits(1021);
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 3);
  for (float& x : logits) x = normal(random);
  const SamplingOptions options{0.8f, 40, 0.95f, 0.02f, 1234};
  Use(1021, options);
  std::vector<int32_t> first, second;
  for (int i = 0; i < 50; ++i) first.push_back(sampler_.Sample(logits.data()));
  sampler_.Configure(options);
  for (int i = 0; i < 50; ++i) second.push_back(sampler_.Sample(logits.data()));
  EXPECT_EQ(first, second);
  EXPECT_GT(std::set<int32_t>(first.begin(), first.end()).size(), 1u);
}

TEST_P(SamplerTest, NotANumber_NeverWinsAndNeverHangs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> logits = {nan, 1, nan, 2, nan};
  for (float temperature : {0.0f, 1.0f}) {
    Use(5, {temperature, 0, 0.9f, 0.1f, 1});
    for (int i = 0; i < 20; ++i) {
      const int32_t id = sampler_.Sample(logits.data());
      EXPECT_TRUE(id == 1 || id == 3) << id;
    }
    const std::vector<float> none(5, nan);
    const int32_t id = sampler_.Sample(none.data());
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 5);
  }
}

// Whoever chooses elsewhere draws the same numbers, and gives back those that were not needed.
TEST_P(SamplerTest, PeekedDraws_AreThoseOfTheSamplesThatFollow) {
  // Of two equal logits the first one is chosen by the lower half of all draws.
  const std::vector<float> logits = {1.0f, 1.0f};
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingOptions options = {temperature, 0, 1.0f, 0.0f, 9};
    Use(2, options);
    uint32_t draws[40];
    sampler_.PeekDraws({draws, 40});
    std::vector<uint64_t> states;
    for (const uint32_t draw : draws) {
      const int32_t expected = temperature == 0.0f ? 0 : static_cast<int32_t>(draw >> 31);
      EXPECT_EQ(expected, sampler_.Sample(logits.data()));
      states.push_back(sampler_.random_state());
    }
    sampler_.Configure(options);
    sampler_.SkipDraws(0);
    sampler_.SkipDraws(7);
    EXPECT_EQ(states[6], sampler_.random_state());
    sampler_.SkipDraws(33);
    EXPECT_EQ(states[39], sampler_.random_state());
  }
}

TEST(Sampling_Check, BadValues_AreNamed) {
  Diag diag;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const SamplingOptions bad[] = {{-1.0f, 0, 1.0f, 0.0f, 0}, {nan, 0, 1.0f, 0.0f, 0},
                                 {1.0f, 0, 0.0f, 0.0f, 0},  {1.0f, 0, 1.1f, 0.0f, 0},
                                 {1.0f, 0, 1.0f, 1.0f, 0},  {1.0f, 0, 1.0f, nan, 0}};
  for (const SamplingOptions& options : bad) {
    EXPECT_EQ(Status::kBadArgument, CheckSampling(options, &diag));
    EXPECT_NE(nullptr, strstr(diag.text(), "expected"));
  }
  EXPECT_EQ(Status::kOk, CheckSampling(SamplingOptions(), &diag));
}

INSTANTIATE_TEST_SUITE_P(Ops, SamplerTest, testing::Values(BackendId::kCpu, BackendId::kReference));

}  // namespace
}  // namespace arn
