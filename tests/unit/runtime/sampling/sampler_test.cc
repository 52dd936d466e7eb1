#include "runtime/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/math/exp_f32.h"
#include "platform/base/arith.h"
#include "runtime/backends.h"
#include "runtime/sampling/draw.h"

namespace arn {

void PrintTo(BackendId id, std::ostream* out) { *out << FindBackend(id)->name; }

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
    sampler_.Init(FindLogitsOps(*FindBackend(GetParam())), plan, memory, vocab);
    sampler_.Configure(options);
  }

  // Returns how often each id was drawn.
  std::vector<int> Draw(const std::vector<float>& logits, int draws) {
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(sampler_.Sample(logits.data()))];
    return counts;
  }

  std::vector<std::byte> bytes_;
  Sampler sampler_;
};

// The distribution of transformers' logits warpers, in double, computed naively.
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

// A vocabulary larger than the blocks of the top-k scan, with many equal logits.
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

// Returns the token for one random number by definition: weighs every token, in order.
int32_t ByDefinition(const std::vector<float>& logits, const SamplingOptions& o, double unit) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i])) ids.push_back(i);
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  if (o.top_k > 0 && o.top_k < ids.size()) ids.resize(o.top_k);
  const float max = logits[ids[0]], inverse = 1.0f / o.temperature;
  const auto weight = [&](uint32_t id) { return ExpF32((logits[id] - max) * inverse); };
  double total = 0.0, mass = 0.0;
  for (uint32_t id : ids) total += static_cast<double>(weight(id));
  size_t kept = 0;
  while (kept < ids.size() && (o.top_p == 1.0f || mass < total * static_cast<double>(o.top_p))) {
    mass += static_cast<double>(weight(ids[kept++]));
  }
  ids.resize(kept);
  std::sort(ids.begin(), ids.end());
  std::vector<float> weights;
  for (uint32_t id : ids) weights.push_back(weight(id) < o.min_p ? 0.0f : weight(id));
  return static_cast<int32_t>(
      ids[DrawInOrder(weights.data(), static_cast<uint32_t>(weights.size()), unit)]);
}

// Skipping tokens that cannot be chosen changes no result: peaked and flat distributions, and one
// with NaN, infinity and many equal logits.
TEST_P(SamplerTest, Sample_OfALargeVocabulary_IsTheDefinitions) {
  constexpr uint32_t kVocab = 10007;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float spread : {0.5f, 3.0f, 30.0f}) {
    std::vector<float> logits(kVocab);
    std::mt19937 random(9);
    std::normal_distribution<float> normal(100.0f, spread);
    for (float& x : logits) x = normal(random);
    for (uint32_t i = 0; i < kVocab; i += 5) logits[i] = std::round(logits[i]);
    logits[17] = std::numeric_limits<float>::quiet_NaN();
    logits[18] = -infinity;
    for (SamplingOptions options :
         {SamplingOptions{1.0f, 0, 1.0f, 0.0f, 1}, SamplingOptions{0.7f, 0, 0.95f, 0.0f, 2},
          SamplingOptions{1.5f, 0, 0.2f, 0.0f, 3}, SamplingOptions{0.8f, 0, 1.0f, 0.05f, 4},
          SamplingOptions{1.0f, 0, 1.0f, 0.999f, 5}, SamplingOptions{0.8f, 0, 0.9f, 0.1f, 6},
          SamplingOptions{0.8f, 40, 0.95f, 0.05f, 7}}) {
      Use(kVocab, options);
      Random draws(options.seed);
      for (int i = 0; i < 40; ++i) {
        ASSERT_EQ(ByDefinition(logits, options, draws.NextUnit()), sampler_.Sample(logits.data()))
            << "draw " << i << " of seed " << options.seed << ", spread " << spread;
      }
    }
  }
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

// Processors forbid tokens by a logit of -inf.
TEST_P(SamplerTest, ForbiddenTokens_AreNeverDrawn) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(300);
  for (float& x : logits) x = normal(random);
  for (size_t i = 0; i < logits.size(); i += 2) {
    logits[i] = -std::numeric_limits<float>::infinity();
  }
  SamplingOptions all;
  all.temperature = 1.5f;
  SamplingOptions k = all, p = all, min = all, typical = all, mirostat = all;
  k.top_k = 200;
  p.top_p = 0.9999f;
  min.min_p = 1e-6f;
  typical.typical_p = 0.999f;
  mirostat.mirostat_tau = 9.0f;
  for (const SamplingOptions& options : {SamplingOptions(), all, k, p, min, typical, mirostat}) {
    Use(300, options);
    const std::vector<int> counts = Draw(logits, 2000);
    int drawn = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i % 2 == 0) {
        EXPECT_EQ(0, counts[i]) << i;
      }
      drawn += counts[i] > 0;
    }
    EXPECT_EQ(options.IsGreedy(), drawn == 1);
  }
}

// A device that samples uses the same random numbers as the host and returns the unused ones.
TEST_P(SamplerTest, PeekedDraws_AreThoseOfTheSamplesThatFollow) {
  // Of two equal logits the lower half of the random numbers selects the first.
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
      states.push_back(sampler_.state().random);
    }
    sampler_.Configure(options);
    sampler_.SkipDraws(0);
    sampler_.SkipDraws(7);
    EXPECT_EQ(states[6], sampler_.state().random);
    sampler_.SkipDraws(33);
    EXPECT_EQ(states[39], sampler_.state().random);
  }
}

TEST(Sampling_Draw, ByBlocks_IsInOrderOrUndecided) {
  std::mt19937 random(5);
  for (const uint32_t n : {1u, 511u, 512u, 513u, 5000u, 200000u}) {
    std::vector<float> weights(n);
    for (float& w : weights) {
      const float unit = static_cast<float>(random() % 1000) * 1e-3f;
      w = random() % 3 == 0 ? 0.0f : unit * unit * unit * unit;
    }
    weights[n / 2] = 1.0f;
    BlockSums blocks;
    blocks.block = BlockSums::BlockOf(n);
    ASSERT_LE(CeilDiv(n, blocks.block), BlockSums::kMaxBlocks);
    for (uint32_t i = 0; i < n; ++i) {
      if (i % blocks.block == 0) blocks.sums[i / blocks.block] = 0.0;
      blocks.sums[i / blocks.block] += static_cast<double>(weights[i]);
    }
    Random draws(n);
    for (int i = 0; i < 50; ++i) {
      const double unit = draws.NextUnit();
      uint32_t index = n;
      ASSERT_TRUE(DrawByBlocks(weights.data(), n, blocks, unit, &index)) << n << " " << unit;
      EXPECT_EQ(DrawInOrder(weights.data(), n, unit), index) << n << " " << unit;
    }
  }
}

TEST(Sampling_Draw, ByBlocks_OnABorder_IsUndecided) {
  const std::vector<float> weights(4096, 1.0f);
  BlockSums blocks;
  blocks.block = 1024;
  std::fill(blocks.sums, blocks.sums + 4, 1024.0);
  uint32_t index = 7;
  for (const double unit : {0.0, 0.25, 0.5, 0.5 + 1.0 / 4096, 0.5 - 1e-14, 0.5 + 1e-14}) {
    EXPECT_FALSE(DrawByBlocks(weights.data(), 4096, blocks, unit, &index)) << unit;
    EXPECT_EQ(7u, index);
  }
  EXPECT_EQ(2048u, DrawInOrder(weights.data(), 4096, 0.5));
  EXPECT_TRUE(DrawByBlocks(weights.data(), 4096, blocks, 0.5 + 1e-9, &index));
  EXPECT_EQ(2048u, index);
}

TEST(Sampling_Check, BadValues_AreNamed) {
  Diag diag;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const SamplingOptions bad[] = {{-1.0f, 0, 1.0f, 0.0f, 0}, {nan, 0, 1.0f, 0.0f, 0},
                                 {1.0f, 0, 0.0f, 0.0f, 0},  {1.0f, 0, 1.1f, 0.0f, 0},
                                 {1.0f, 0, 1.0f, 1.0f, 0},  {1.0f, 0, 1.0f, nan, 0}};
  for (const SamplingOptions& options : bad) {
    EXPECT_EQ(Status::kBadArgument, CheckSampling(options, {}, &diag));
    EXPECT_NE(nullptr, strstr(diag.text(), "expected"));
  }
  EXPECT_EQ(Status::kOk, CheckSampling(SamplingOptions(), {}, &diag));
}

INSTANTIATE_TEST_SUITE_P(Ops, SamplerTest, testing::Values(BackendId::kCpu, BackendId::kReference));

}  // namespace
}  // namespace arn
