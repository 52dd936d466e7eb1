// Token sampling on a device against the host sampler (runtime/sampling/sampler.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "backends.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "program_builder.h"
#include "runtime/sampling/sampler.h"

namespace arn::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Rule {
  const char* name;
  SamplingOptions options;
};
// clang-format off
const Rule kRules[] = {
    {"greedy", {0.0f, 0, 1.0f, 0.0f, 0}},
    {"plain", {1.0f, 0, 1.0f, 0.0f, 0}},
    {"cold", {0.3f, 0, 1.0f, 0.0f, 0}},
    {"hot", {3.0f, 0, 1.0f, 0.0f, 0}},
    {"top_k_1", {1.0f, 1, 1.0f, 0.0f, 0}},
    {"top_k", {0.8f, 40, 1.0f, 0.0f, 0}},
    {"top_p", {1.0f, 0, 0.9f, 0.0f, 0}},
    {"top_p_small", {1.0f, 0, 1e-6f, 0.0f, 0}},
    {"min_p", {1.5f, 0, 1.0f, 0.05f, 0}},
    {"all", {0.9f, 50, 0.95f, 0.02f, 0}},
};
// clang-format on

// An embedding and a head, the minimum for sampling.
struct Head {
  Head(uint32_t vocab, std::mt19937* rng) : builder(vocab, 1, 128) {
    const WeightId words = builder.AddMatrix(RandomMatrix(DType::kF32, vocab, 4, false, rng), {});
    const ValueId x = builder.AddValue(4);
    builder.AddStep(EmbedParams{.weight = words}, kNoValue, x);
    const WeightId norm = builder.AddVector({1.0f, 1.0f, 1.0f, 1.0f});
    builder.AddStep(LogitsParams{.norm = norm, .weight = words}, x, kNoValue);
  }
  ProgramBuilder builder;
};

class Chooser {
 public:
  Chooser(const Backend* backend, uint32_t vocab, std::mt19937* rng)
      : backend_(backend), head_(vocab, rng), session_(backend, &head_.builder, 1) {}

  // Returns the token sampled from `logits`, or -1 if it is a stop token id.
  int32_t Choose(const std::vector<float>& logits, const SamplingOptions& options, uint32_t draw,
                 const std::vector<int32_t>& stop_ids = {}) {
    EXPECT_EQ(Status::kOk, vulkan::WriteLogits(session_.state(), {logits.data(), logits.size()}));
    DecodeArgs args;
    args.sequence.n_rows = 1;
    args.n_steps = 1;
    args.rule = {options.temperature, options.top_k, options.top_p, options.min_p};
    args.rng = {&draw, 1};
    args.stop_ids = {stop_ids.data(), stop_ids.size()};
    int32_t id = -1;
    args.user = &id;
    args.on_token = [](void* user, int32_t seen) {
      *static_cast<int32_t*>(user) = seen;
      return true;
    };
    Diag diag;
    EXPECT_EQ(Status::kOk, backend_->tokens->decode(session_.state(), args, &result, &diag))
        << diag.text();
    return id;
  }
  std::vector<float> Logits() {
    std::vector<float> out(session_.program().vocab);
    Diag diag;
    EXPECT_EQ(Status::kOk,
              backend_->logits->read(session_.state(), {out.data(), out.size()}, nullptr, &diag));
    return out;
  }
  Session& session() { return session_; }
  DecodeResult result;

 private:
  const Backend* backend_;
  Head head_;
  Session session_;
};

// Samples with the host Sampler.
class Host {
 public:
  explicit Host(uint32_t vocab) {
    Layout layout;
    SamplerPlan plan;
    EXPECT_EQ(Status::kOk, PlanSampler(vocab, &layout, &plan));
    bytes_ = AlignedBytes(layout.RegionBytes(Region::kIo));
    Memory memory;
    memory.region[static_cast<uint32_t>(Region::kIo)] = {bytes_.data(), bytes_.size()};
    sampler_.Init(CpuLogitsOps(), plan, memory, vocab);
  }
  int32_t Choose(const std::vector<float>& logits, SamplingOptions options, uint64_t seed,
                 uint32_t* draw) {
    options.seed = seed;
    sampler_.Configure(options);
    sampler_.PeekDraws({draw, 1});
    return sampler_.Sample(logits.data());
  }

 private:
  AlignedBytes bytes_;
  Sampler sampler_;
};

// The cumulative distribution in double, in ascending order of ids.
struct Interval {
  int32_t id;
  double end;
};
std::vector<Interval> Distribution(const std::vector<float>& logits, const SamplingOptions& options,
                                   double top_p) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == logits[i]) ids.push_back(i);
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  const double max = static_cast<double>(logits[ids[0]]);
  const auto weight = [&](uint32_t id) {
    return std::exp((static_cast<double>(logits[id]) - max) /
                    static_cast<double>(options.temperature));
  };
  if (options.top_k > 0 && options.top_k < ids.size()) ids.resize(options.top_k);
  if (options.top_p < 1.0f) {
    double total = 0, mass = 0;
    for (const uint32_t id : ids) total += weight(id);
    size_t n = 0;
    while (n < ids.size() && (n == 0 || mass < total * top_p)) mass += weight(ids[n++]);
    ids.resize(n);
  }
  std::sort(ids.begin(), ids.end());
  std::vector<Interval> out;
  double total = 0;
  for (const uint32_t id : ids) {
    const double w = weight(id);
    if (w < static_cast<double>(options.min_p)) continue;
    total += w;
    out.push_back({static_cast<int32_t>(id), total});
  }
  for (Interval& interval : out) interval.end /= total;
  return out;
}

// Tolerance at the boundary between two tokens: weights are rounded to 2^-31 and a float exp is off
// by about 2^-23 relative.
constexpr double kNearBoundary = 2e-5;

bool IsNear(const std::vector<float>& logits, const SamplingOptions& options, double unit,
            int32_t id) {
  for (const double turned : {0.0, -1e-6, 1e-6}) {
    double begin = 0;
    for (const Interval& interval :
         Distribution(logits, options, static_cast<double>(options.top_p) + turned)) {
      if (interval.id == id) {
        if (unit > begin - kNearBoundary && unit < interval.end + kNearBoundary) return true;
      }
      begin = interval.end;
    }
  }
  return false;
}

std::vector<float> LogitsLike(uint32_t vocab, uint32_t kind, std::mt19937* rng) {
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(vocab);
  for (float& x : logits) {
    x = normal(*rng);
    if (kind == 1) x = std::round(x);  // many equal values
    if (kind == 2) x = x < -3.0f ? kNan : x < 0.0f ? -kInf : x;
    if (kind == 3) x = x < 0.0f ? 0.0f : -0.0f;  // all values equal
    if (kind == 4) x -= 1e4f;
  }
  return logits;
}

class ChooseTest : public testing::TestWithParam<vulkan::Restriction> {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(VulkanBackend())) GTEST_SKIP() << problem;
    backend_ = vulkan::RestrictedBackend(GetParam());
  }
  const Backend* backend_ = nullptr;
};

TEST_P(ChooseTest, AnyLogitsAndRule_ChoosesAsTheHost) {
  std::mt19937 rng(71);
  uint32_t n_draws = 0, n_equal = 0;
  for (const uint32_t vocab : {1u, 8u, 1021u, 49152u, 262144u}) {
    Chooser chooser(backend_, vocab, &rng);
    Host host(vocab);
    // A software driver takes a second for some of the large vocabularies.
    const bool is_large = vocab > 2000, is_largest = vocab > 50000;
    for (uint32_t kind = is_large ? 1 : 0; kind < (is_large ? 2u : 5u); ++kind) {
      const std::vector<float> logits = LogitsLike(vocab, kind, &rng);
      for (const Rule& rule : kRules) {
        SCOPED_TRACE(testing::Message() << rule.name << ", " << vocab << ", kind " << kind);
        const bool is_greedy = rule.options.temperature == 0.0f;
        const bool takes_all = rule.options.top_k != 0 && rule.options.min_p != 0.0f;
        if (is_largest && !is_greedy && !takes_all) continue;
        const uint32_t n_seeds = is_greedy || is_large ? 1 : 6;
        for (uint32_t seed = 0; seed < n_seeds; ++seed) {
          uint32_t draw = 0;
          const int32_t expected = host.Choose(logits, rule.options, seed, &draw);
          const int32_t found = chooser.Choose(logits, rule.options, draw);
          if (is_greedy) {
            ASSERT_EQ(expected, found);
            continue;
          }
          ++n_draws;
          n_equal += expected == found ? 1 : 0;
          ASSERT_TRUE(expected == found || IsNear(logits, rule.options, draw * 0x1p-32, found))
              << found << " instead of " << expected;
        }
      }
    }
  }
  // Random numbers this close to a boundary are rare.
  EXPECT_GE(n_equal * 100, n_draws * 98) << n_equal << " of " << n_draws;
}

// Random numbers just inside both ends of every interval select each token.
TEST_P(ChooseTest, DrawsEverywhere_GiveTheHostsShares) {
  std::mt19937 rng(72);
  const std::vector<float> logits = LogitsLike(29, 0, &rng);
  Chooser chooser(backend_, 29, &rng);
  for (const Rule& rule : kRules) {
    if (rule.options.temperature == 0.0f) continue;
    SCOPED_TRACE(rule.name);
    std::set<int32_t> seen;
    double begin = 0;
    for (const Interval& interval :
         Distribution(logits, rule.options, static_cast<double>(rule.options.top_p))) {
      if (interval.end - begin > 4 * kNearBoundary) {
        for (const double at : {begin + kNearBoundary, interval.end - kNearBoundary}) {
          EXPECT_EQ(interval.id,
                    chooser.Choose(logits, rule.options, static_cast<uint32_t>(at * 0x1p32)));
        }
      }
      begin = interval.end;
    }
  }
}

TEST_P(ChooseTest, NothingToDrawFrom_IsTheHostsChoice) {
  std::mt19937 rng(73);
  Chooser chooser(backend_, 300, &rng);
  Host host(300);
  for (const float other : {kNan, -kInf}) {
    std::vector<float> logits(300, other);
    for (const float one : {kNan, -kInf, kInf, -3.0f}) {
      logits[277] = one;
      logits[278] = one;
      for (const Rule& rule : kRules) {
        uint32_t draw = 0;
        const int32_t expected = host.Choose(logits, rule.options, 5, &draw);
        EXPECT_EQ(expected, chooser.Choose(logits, rule.options, draw))
            << rule.name << " " << other << " " << one;
      }
    }
  }
}

TEST_P(ChooseTest, End_IsNotRunAndLeavesTheLogits) {
  std::mt19937 rng(74);
  Chooser chooser(backend_, 1021, &rng);
  const std::vector<float> logits = LogitsLike(1021, 0, &rng);
  const int32_t best = chooser.Choose(logits, {}, 0);
  EXPECT_EQ(1u, chooser.result.n_tokens);
  EXPECT_NE(logits, chooser.Logits());
  EXPECT_EQ(-1, chooser.Choose(logits, {}, 0, {3, best}));
  EXPECT_EQ(0u, chooser.result.n_tokens);
  EXPECT_TRUE(chooser.result.ended);
  EXPECT_EQ(logits, chooser.Logits());
  EXPECT_EQ(best, chooser.Choose(logits, {}, 0, {3}));
}

TEST_P(ChooseTest, WrongArguments_AreRefused) {
  std::mt19937 rng(75);
  Chooser chooser(backend_, 8, &rng);
  DecodeArgs args;
  args.sequence.n_rows = 1;
  args.n_steps = 1;
  const auto status = [&] {
    DecodeResult result;
    Diag diag;
    return backend_->tokens->decode(chooser.session().state(), args, &result, &diag);
  };
  EXPECT_EQ(Status::kOk, status());
  args.n_steps = 0;
  EXPECT_EQ(Status::kBadArgument, status());
  args.n_steps = DecodeArgs::kMaxSteps + 1;
  EXPECT_EQ(Status::kBadArgument, status());
  args.n_steps = 1;
  args.rule.temperature = 1.0f;  // without a random number
  EXPECT_EQ(Status::kBadArgument, status());
  args.rule.temperature = 0.0f;
  args.sequence.first_position = 128;
  EXPECT_EQ(Status::kContextFull, status());
  float few[7];
  Diag diag;
  EXPECT_EQ(Status::kBadArgument,
            backend_->logits->read(chooser.session().state(), {few, 7}, nullptr, &diag));
}

INSTANTIATE_TEST_SUITE_P(Vulkan, ChooseTest,
                         testing::Values(vulkan::Restriction::kNone,
                                         vulkan::Restriction::kSharedMemory,
                                         vulkan::Restriction::kStaged),
                         [](const auto& p) { return NameOf(p.param); });

}  // namespace
}  // namespace arn::conformance
