// Logits processors and warpers: against transformers (data/sampling_cases.json, made by
// data/make_sampling_cases.py), and against llama.cpp's formulas written out naively.
#include "runtime/sampling/processors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/backends.h"
#include "runtime/sampling/sampler.h"

namespace arn {
namespace {

using nlohmann::json;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class ProcessorsTest : public testing::Test {
 protected:
  void Use(uint32_t vocab, const SamplingOptions& options) {
    Layout layout;
    SamplerPlan plan;
    ProcessorsPlan processors;
    ASSERT_EQ(Status::kOk, PlanSampler(vocab, &layout, &plan));
    ASSERT_EQ(Status::kOk, PlanProcessors(vocab, &layout, &processors));
    bytes_.assign(layout.RegionBytes(Region::kIo), std::byte{0});
    lists_.assign(1000, 0);
    Memory memory;
    memory.region[static_cast<uint32_t>(Region::kIo)] = {bytes_.data(), bytes_.size()};
    sampler_.Init(FindLogitsOps(*FindBackend(BackendId::kReference)), plan, memory, vocab,
                  lists_.data());
    Diag diag;
    ASSERT_EQ(Status::kOk, CheckSampling(options, {vocab, true, 1000}, &diag)) << diag.text();
    sampler_.Configure(options);
    processors_.Init(processors, memory, vocab);
    vocab_ = vocab;
  }

  std::vector<float> Process(const std::vector<int32_t>& ids, const std::vector<float>& logits,
                             ProcessorInput input = {}) {
    input.ids = {ids.data(), ids.size()};
    const float* row = processors_.Apply(sampler_.options(), input, logits.data());
    return {row, row + vocab_};
  }

  // Draws from processed logits; returns how often each id came.
  std::vector<int> Draw(const std::vector<float>& row, int draws) {
    std::vector<int> counts(vocab_);
    for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(sampler_.Sample(row.data()))];
    return counts;
  }

  uint32_t vocab_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<uint32_t> lists_;
  Sampler sampler_;
  LogitsProcessors processors_;
};

// Sets the options of a case by the names of the table. `words` owns the lists' elements.
SamplingOptions OptionsOf(const json& given, std::vector<std::vector<uint32_t>>* words) {
  SamplingOptions options;
  for (const auto& [name, value] : given.items()) {
    const SamplingOption* found = nullptr;
    for (const SamplingOption& option : SamplingOptionTable()) {
      if (name == option.name) found = &option;
    }
    if (found == nullptr) {
      ADD_FAILURE() << name;
      continue;
    }
    std::vector<uint32_t>& bits = words->emplace_back();
    for (const json& element : value.is_array() ? value : json::array({value})) {
      const bool is_float = found->type == OptionType::kFloat || found->type == OptionType::kFloats;
      const float number = element.get<float>();
      const int32_t whole = is_float ? 0 : element.get<int32_t>();
      uint32_t word;
      std::memcpy(&word, is_float ? static_cast<const void*>(&number) : &whole, sizeof word);
      bits.push_back(word);
    }
    found->Set({bits.data(), bits.size()}, &options);
  }
  return options;
}

TEST_F(ProcessorsTest, Cases_AreAsInTransformers) {
  std::ifstream file(ARN_SAMPLING_CASES);
  const json cases = json::parse(file);
  ASSERT_LT(90u, cases.size());
  const uint32_t eos[] = {1, 7};
  for (const json& c : cases) {
    SCOPED_TRACE(c["options"].dump());
    std::vector<std::vector<uint32_t>> words;
    const auto logits = c["logits"].get<std::vector<float>>();
    const auto ids = c["ids"].get<std::vector<int32_t>>();
    Use(static_cast<uint32_t>(logits.size()), OptionsOf(c["options"], &words));
    ProcessorInput input;
    input.n_generated = static_cast<uint32_t>(ids.size()) - c["n_prompt"].get<uint32_t>();
    input.eos_ids = {eos, 2};
    input.is_last = c["is_last"];
    const std::vector<float> row = Process(ids, logits, input);
    for (size_t i = 0; i < logits.size(); ++i) {
      const json& expected = c["processed"][i];
      if (expected.is_null()) {
        EXPECT_EQ(kMinusInfinity, row[i]) << i;
      } else {
        EXPECT_FLOAT_EQ(expected.get<float>(), row[i]) << i;
      }
    }
    if (!c.contains("probabilities")) continue;
    constexpr int kDraws = 20000;
    const std::vector<int> counts = Draw(row, kDraws);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double p = c["probabilities"][i], at = kDraws * p;
      if (p == 0.0) {
        EXPECT_EQ(0, counts[i]) << i;
      }
      EXPECT_NEAR(at, counts[i], 5 * std::sqrt(at * (1 - p)) + 1e-9) << i;
    }
  }
}

std::vector<float> RandomLogits(std::mt19937* random, size_t n) {
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(n);
  for (float& x : logits) x = normal(*random);
  return logits;
}

// llama_sampler_penalties_apply.
TEST_F(ProcessorsTest, Penalties_CountTheTokensOfTheWindow) {
  std::mt19937 random(1);
  for (const uint32_t window : {0u, 1u, 7u, 64u, 1000u}) {
    SamplingOptions options;
    options.repetition_penalty = 1.2f;
    options.frequency_penalty = 0.3f;
    options.presence_penalty = 0.7f;
    options.penalty_window = window;
    Use(20, options);
    const std::vector<float> logits = RandomLogits(&random, 20);
    std::vector<int32_t> ids(100);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 12);
    const size_t first = window == 0 || window > 100 ? 0 : 100 - window;
    std::map<int32_t, int> counts;
    for (size_t i = first; i < ids.size(); ++i) ++counts[ids[i]];
    std::vector<float> expected = logits;
    for (const auto& [id, count] : counts) {
      float& x = expected[static_cast<size_t>(id)];
      x = x <= 0 ? x * 1.2f : x / 1.2f;
      x -= static_cast<float>(count) * 0.3f + 0.7f;
    }
    const std::vector<float> row = Process(ids, logits);
    for (size_t i = 0; i < 20; ++i) EXPECT_FLOAT_EQ(expected[i], row[i]) << window << " " << i;
  }
}

// llama_sampler_dry_apply, by its definition: for each token, the longest suffix of the history
// that stands before it somewhere, without a breaker.
TEST_F(ProcessorsTest, Dry_PenalisesWhatContinuesARepetition) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    SamplingOptions options;
    options.dry_multiplier = 0.8f;
    options.dry_base = round % 5 == 0 ? 1.0f : 1.75f;
    options.dry_allowed_length = random() % 4;
    options.dry_window = round % 3 == 0 ? 0 : random() % 40;
    const int32_t breakers[] = {3, 9};
    if (round % 2 == 0) options.dry_breakers = {breakers, 2};
    const int32_t sequences[] = {2, 1, -1, 1, 0, 2, -1, 1, 0};
    if (round % 7 < 4) options.dry_breaker_sequences = {sequences, 9};
    Use(10, options);
    const std::vector<float> logits = RandomLogits(&random, 10);
    std::vector<int32_t> all(random() % 50);
    const uint32_t kinds = 1 + random() % 4;
    for (int32_t& id : all) id = static_cast<int32_t>(random() % kinds);
    const size_t n =
        options.dry_window == 0 ? all.size() : std::min<size_t>(options.dry_window, all.size());
    const std::vector<int32_t> ids(all.end() - static_cast<ptrdiff_t>(n), all.end());
    const auto is_breaker = [&](int32_t id) {
      return !options.dry_breakers.empty() && (id == 3 || id == 9);
    };
    const size_t allowed = options.dry_allowed_length;
    std::vector<float> expected = logits;
    size_t limit = n;
    for (size_t i = 0; i < n; ++i) {
      const auto is_here = [&](std::initializer_list<int32_t> sequence) {
        return round % 7 < 4 && sequence.size() <= i + 1 &&
               std::equal(sequence.begin(), sequence.end(),
                          ids.end() - 1 - static_cast<ptrdiff_t>(i));
      };
      size_t behind = n;  // tokens of the longest breaker that begins here, without the first
      if (is_breaker(ids[n - 1 - i])) behind = 0;
      if (is_here({2, 1}) || is_here({1, 0})) behind = 1;
      if (is_here({1, 0, 2})) behind = 2;
      if (behind == n) continue;
      limit = i - behind;
      break;
    }
    for (int32_t token = 0; token < 10 && n > allowed && limit >= allowed; ++token) {
      int longest = -1;
      for (size_t at = 1; at < n; ++at) {  // where the token stands
        if (ids[at] != token) continue;
        size_t length = 0;
        while (length < limit && length < at && ids[at - 1 - length] == ids[n - 1 - length]) {
          ++length;
        }
        longest = std::max(longest, static_cast<int>(length));
      }
      if (longest < static_cast<int>(allowed) || is_breaker(token)) continue;
      expected[static_cast<size_t>(token)] -=
          0.8f *
          std::pow(options.dry_base, static_cast<float>(longest) - static_cast<float>(allowed));
    }
    const std::vector<float> row = Process(all, logits);
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_NEAR(expected[i], row[i], 1e-4f * std::fabs(expected[i]) + 1e-6f) << round << " " << i;
    }
  }
}

TEST_F(ProcessorsTest, Dry_GrowsNoFurtherThanAFloat) {
  SamplingOptions options;
  options.dry_multiplier = 1.0f;
  Use(4, options);
  const std::vector<float> row = Process(std::vector<int32_t>(3000, 1), {0, 0, 0, 0});
  EXPECT_TRUE(std::isfinite(row[1]));
  EXPECT_GT(-1e37f, row[1]);
  EXPECT_EQ(0.0f, row[0]);
}

// llama_sampler_top_n_sigma_apply.
TEST_F(ProcessorsTest, TopNSigma_KeepsWhatIsNearTheLargest) {
  std::mt19937 random(3);
  for (const float n : {0.5f, 1.0f, 2.0f}) {
    SamplingOptions options;
    options.top_n_sigma = n;
    options.suppress_tokens = {};
    Use(50, options);
    std::vector<float> logits = RandomLogits(&random, 50);
    logits[7] = kMinusInfinity;
    double sum = 0, squares = 0;
    float max = kMinusInfinity;
    for (const float x : logits) {
      if (x == kMinusInfinity) continue;
      sum += static_cast<double>(x);
      max = std::max(max, x);
    }
    const double mean = sum / 49;
    for (const float x : logits) {
      if (x != kMinusInfinity) squares += std::pow(static_cast<double>(x) - mean, 2);
    }
    const double least =
        static_cast<double>(max) - static_cast<double>(n) * std::sqrt(squares / 49);
    const std::vector<float> row = Process({1, 2, 3}, logits);
    for (size_t i = 0; i < 50; ++i) {
      EXPECT_EQ(static_cast<double>(logits[i]) < least ? kMinusInfinity : logits[i], row[i]) << i;
    }
  }
}

// llama_sampler_xtc_apply.
TEST_F(ProcessorsTest, Xtc_RemovesAllButTheLeastLikelyOfTheTop) {
  std::vector<float> logits(6);
  const double p[] = {0.4, 0.05, 0.25, 0.15, 0.1, 0.05};
  for (size_t i = 0; i < 6; ++i) logits[i] = static_cast<float>(std::log(p[i]));
  SamplingOptions options;
  options.temperature = 1.0f;
  options.xtc_threshold = 0.12f;
  options.xtc_probability = 0.3f;
  options.seed = 5;
  Use(6, options);
  constexpr int kDraws = 60000;
  const std::vector<int> counts = Draw(logits, kDraws);
  // With probability 0.3, tokens 0 and 2 are gone and the rest adds up to 0.35.
  for (size_t i = 0; i < 6; ++i) {
    const bool is_removed = i == 0 || i == 2;
    const double expected = 0.7 * p[i] + (is_removed ? 0.0 : 0.3 * p[i] / 0.35);
    EXPECT_NEAR(kDraws * expected, counts[i], 5 * std::sqrt(kDraws * expected)) << i;
  }
  options.xtc_threshold = 0.51f;
  options.xtc_probability = 1.0f;
  Use(6, options);
  EXPECT_NEAR(kDraws * 0.4, Draw(logits, kDraws)[0], 5 * std::sqrt(kDraws * 0.4));
}

// llama_sampler_mirostat_v2_apply.
TEST_F(ProcessorsTest, Mirostat_CutsOffAndLearns) {
  std::mt19937 random(4);
  SamplingOptions options;
  options.temperature = 0.9f;
  options.mirostat_tau = 2.0f;
  options.mirostat_eta = 0.2f;
  options.seed = 11;
  Use(60, options);
  double mu = 4.0;
  EXPECT_FLOAT_EQ(4.0f, sampler_.state().mirostat_mu);
  for (int step = 0; step < 200; ++step) {
    const std::vector<float> logits = RandomLogits(&random, 60);
    std::vector<double> p(60);
    double total = 0;
    for (size_t i = 0; i < 60; ++i) total += p[i] = std::exp(static_cast<double>(logits[i]) / 0.9);
    double kept = 0, best = 0;
    for (double& x : p) x /= total;
    for (const double x : p) best = std::max(best, x);
    for (double& x : p) {
      if (x != best && -std::log2(x) > mu) x = 0;
      kept += x;
    }
    const auto id = static_cast<size_t>(sampler_.Sample(logits.data()));
    ASSERT_LT(0.0, p[id]) << step;
    mu -= 0.2 * (-std::log2(p[id] / kept) - 2.0);
    ASSERT_NEAR(mu, static_cast<double>(sampler_.state().mirostat_mu), 1e-3) << step;
    mu = static_cast<double>(sampler_.state().mirostat_mu);
  }
}

// Every option that says it needs processors changes some row, and no other option does.
TEST_F(ProcessorsTest, Table_SaysWhichOptionsAreProcessors) {
  const int32_t ids[] = {3};
  const float values[] = {-1.0f};
  const auto on = [&](const SamplingOption& option, SamplingOptions* options) {
    const float number = option.type == OptionType::kFloat ? 0.5f : 0.0f;
    const uint32_t whole[] = {1, 0};
    uint32_t bits[2] = {};
    switch (option.type) {
      case OptionType::kIds:
        options->bias_ids = {};
        option.Set({reinterpret_cast<const uint32_t*>(ids), 1}, options);
        break;
      case OptionType::kFloats:
        option.Set({reinterpret_cast<const uint32_t*>(values), 1}, options);
        break;
      case OptionType::kFloat:
        std::memcpy(bits, &number, sizeof number);
        option.Set({bits, 1}, options);
        break;
      case OptionType::kU32:
      case OptionType::kI32: option.Set({whole, 1}, options); break;
      case OptionType::kU64: option.Set({whole, 2}, options); break;
    }
  };
  for (const SamplingOption& option : SamplingOptionTable()) {
    SamplingOptions options;
    on(option, &options);
    EXPECT_FALSE(option.IsOff(options)) << option.name;
    const bool is_processor = (option.flags & SamplingOption::kProcessor) != 0;
    EXPECT_EQ(is_processor, options.Processor() != nullptr) << option.name;
    EXPECT_EQ((option.flags & SamplingOption::kOnDevice) != 0, options.RunsOnDevice())
        << option.name;
    if (!is_processor) continue;
    if (std::string("bias_ids") == option.name) options.bias_values = {values, 1};
    Use(8, options);
    const std::vector<float> logits = {1, 2, 3, 2, 1, 0, -1, -2};
    const uint32_t eos[] = {2};
    ProcessorInput input;
    input.eos_ids = {eos, 1};
    input.is_last = true;
    EXPECT_NE(logits, Process({3, 1, 3, 1, 3}, logits, input)) << option.name;
  }
}

TEST_F(ProcessorsTest, CheckSampling_RefusesByName) {
  const auto refused = [](const SamplingOptions& options, const SamplingLimits& limits) {
    Diag diag;
    EXPECT_NE(Status::kOk, CheckSampling(options, limits, &diag));
    return std::string(diag.text());
  };
  SamplingOptions options;
  options.presence_penalty = 1.0f;
  EXPECT_EQ("presence_penalty changes logits: create the session with logits_processors = 1",
            refused(options, {10, false, 0}));
  const int32_t ids[] = {3, -1, 10};
  options = {};
  options.bad_words = {ids, 3};
  EXPECT_EQ("bad_words[2] is token 10, the vocabulary has 10", refused(options, {10, true, 9}));
  EXPECT_EQ(
      "the lists of the sampling options have 3 elements, the session was created with "
      "sampling_words = 2",
      refused(options, {11, true, 2}));
  options = {};
  options.suppress_tokens = {ids, 3};
  EXPECT_EQ("suppress_tokens[1] is token -1, the vocabulary has 11", refused(options, {11}));
  options = {};
  options.bias_ids = {ids, 3};
  EXPECT_EQ("bias_ids has 2 sequences, bias_values 0 elements", refused(options, {11}));
  options = {};
  options.forced_first = 11;
  EXPECT_EQ("forced_first is token 11, the vocabulary has 11", refused(options, {11}));
  options = {};
  options.typical_p = 0.0f;
  EXPECT_EQ("typical_p is 0, expected above 0 and at most 1", refused(options, {11}));
  options = {};
  options.frequency_penalty = std::numeric_limits<float>::infinity();
  EXPECT_EQ("frequency_penalty is inf, expected a number", refused(options, {11}));
}

}  // namespace
}  // namespace arn
