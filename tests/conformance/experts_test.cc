// kRoute and kExperts.
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/code_type.h"
#include "kernels/contract/route.h"
#include "kernels/cpu/backend_cpu.h"
#include "platform/base/arith.h"
#include "program_builder.h"
#include "tests/support/row_bits.h"

namespace arn::conformance {
namespace {

class ExpertsTest : public BackendTest {};

TEST_P(ExpertsTest, Route_ManyRows_TheLargestScores) {
  std::mt19937 rng(41);
  for (const auto& [n_experts, n_chosen] : {std::pair{1u, 1u}, {4u, 2u}, {8u, 8u}, {128u, 8u}}) {
    for (const auto& [norm_topk_prob, score] : {std::pair{false, RouteScore::kSoftmax},
                                                {true, RouteScore::kSoftmax},
                                                {false, RouteScore::kSigmoid},
                                                {true, RouteScore::kSigmoid}}) {
      SCOPED_TRACE(testing::Message() << n_chosen << " of " << n_experts);
      ProgramBuilder builder(2, 17, 64);
      Step step{RouteParams()};
      auto& params = step.Get<RouteParams>();
      step.in = builder.AddValue(n_experts);
      step.out = builder.AddValue(2 * n_chosen);
      params.n_experts = static_cast<uint16_t>(n_experts);
      params.n_chosen = static_cast<uint16_t>(n_chosen);
      params.norm_topk_prob = norm_topk_prob;
      params.route_score = score;
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      const auto logits = RandomFloats(17 * n_experts, 3.0f, &rng);
      std::memcpy(session.ValueData(step.in), logits.data(), logits.size() * sizeof(float));
      Batch batch(session.program(), {{0, 17}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
      for (uint32_t row = 0; row < 17; ++row) {
        std::vector<std::pair<double, uint32_t>> sorted;
        double total = 0.0, chosen = 0.0;
        for (uint32_t e = 0; e < n_experts; ++e) {
          const double power = std::exp(static_cast<double>(logits[row * n_experts + e]));
          const double p = score == RouteScore::kSigmoid ? power / (1.0 + power) : power;
          sorted.push_back({-p, e});
          total += p;
        }
        std::sort(sorted.begin(), sorted.end());
        for (uint32_t i = 0; i < n_chosen; ++i) chosen -= sorted[i].first;
        const float* topk = session.ValueData(step.out) + row * 2 * n_chosen;
        for (uint32_t i = 0; i < n_chosen; ++i) {
          ASSERT_EQ(static_cast<float>(sorted[i].second), topk[i]) << "row " << row;
          const double whole = norm_topk_prob                  ? chosen
                               : score == RouteScore::kSoftmax ? total
                                                               : 1.0;
          ASSERT_NEAR(-sorted[i].first / whole, static_cast<double>(topk[n_chosen + i]),
                      kTolerance);
        }
      }
    }
  }
}

// Routing in double precision: the ids in descending order of choice, then their weights.
std::vector<double> ExactRoute(const RouteParams& p, const std::vector<float>& correction,
                               const float* logits) {
  std::vector<double> scores(p.n_experts);
  double largest = -INFINITY, total = 0.0;
  for (size_t e = 0; e < scores.size(); ++e) {
    largest = std::max(largest, static_cast<double>(logits[e]));
  }
  for (size_t e = 0; e < scores.size(); ++e) {
    const auto x = static_cast<double>(logits[e]);
    scores[e] =
        p.route_score == RouteScore::kSigmoid ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x - largest);
    total += scores[e];
  }
  std::vector<double> choice(scores.size());
  for (size_t e = 0; e < scores.size(); ++e) {
    if (p.route_score == RouteScore::kSoftmax) scores[e] /= total;
    choice[e] = scores[e] + (correction.empty() ? 0.0 : static_cast<double>(correction[e]));
  }
  if (p.n_groups != 0) {
    const size_t size = scores.size() / p.n_groups;
    std::vector<std::pair<double, size_t>> groups;
    for (size_t g = 0; g < p.n_groups; ++g) {
      std::vector<double> of(choice.begin() + static_cast<ptrdiff_t>(g * size),
                             choice.begin() + static_cast<ptrdiff_t>((g + 1) * size));
      std::sort(of.rbegin(), of.rend());
      groups.push_back({-of[0] - of[1], g});
    }
    std::sort(groups.begin(), groups.end());
    for (size_t i = p.n_groups_chosen; i < groups.size(); ++i) {
      for (size_t e = 0; e < size; ++e) choice[groups[i].second * size + e] = -INFINITY;
    }
  }
  std::vector<std::pair<double, size_t>> sorted;
  for (size_t e = 0; e < choice.size(); ++e) sorted.push_back({-choice[e], e});
  std::sort(sorted.begin(), sorted.end());
  double chosen = 0.0;
  for (size_t i = 0; i < p.n_chosen; ++i) chosen += scores[sorted[i].second];
  const double divisor =
      std::max(chosen + static_cast<double>(p.topk_epsilon), static_cast<double>(p.topk_least));
  std::vector<double> out;
  for (size_t i = 0; i < p.n_chosen; ++i) out.push_back(static_cast<double>(sorted[i].second));
  for (size_t i = 0; i < p.n_chosen; ++i) {
    out.push_back(scores[sorted[i].second] / (p.norm_topk_prob ? divisor : 1.0));
  }
  return out;
}

// Runs the step on random logits and compares each row with `expected`.
template <typename Expected>
void ExpectRoutes(const BackendCase& backend, RouteParams params,
                  const std::vector<float>& correction, const Expected& expected,
                  std::mt19937* rng) {
  constexpr uint32_t kRows = 23;
  ProgramBuilder builder(2, kRows, 64);
  const ValueId in = builder.AddValue(params.n_experts);
  const ValueId out = builder.AddValue(2u * params.n_chosen);
  if (!correction.empty()) params.correction = builder.AddVector(correction);
  builder.AddStep(params, in, out);
  const bool is_refused = params.route_score == RouteScore::kSparseMixer;
  if (is_refused && backend.backend->host_kv == nullptr) {
    std::string message;
    EXPECT_FALSE(CanLoad(backend.backend, &builder, &message));
    EXPECT_NE(std::string::npos, message.find("Vulkan: layer 0, step route: routing ")) << message;
    return;
  }
  Session session(backend.backend, &builder, backend.n_threads);
  const auto logits = RandomFloats(kRows * params.n_experts, 3.0f, rng);
  std::memcpy(session.ValueData(in), logits.data(), logits.size() * sizeof(float));
  Batch batch(session.program(), {{0, kRows}}, rng);
  ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
  for (uint32_t row = 0; row < kRows; ++row) {
    const std::vector<double> wanted = expected(params, &logits[row * params.n_experts]);
    const float* topk = session.ValueData(out) + row * wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(wanted[i], static_cast<double>(topk[i]), kTolerance) << row << " " << i;
    }
  }
}

TEST_P(ExpertsTest, Route_WithCorrectionAndGroups_EqualsTheFormula) {
  std::mt19937 rng(46);
  for (const RouteScore score : {RouteScore::kSoftmax, RouteScore::kSigmoid}) {
    for (const bool norm_topk_prob : {false, true}) {
      for (const uint16_t n_groups : {uint16_t{0}, uint16_t{3}, uint16_t{21}}) {
        for (const bool has_correction : {false, true}) {
          RouteParams p;
          p.n_experts = 42;
          p.n_chosen = 5;
          p.route_score = score;
          p.norm_topk_prob = norm_topk_prob;
          p.n_groups = n_groups;
          p.n_groups_chosen = n_groups == 21 ? 4 : n_groups == 3 ? 2 : 0;
          p.topk_epsilon = 0.01f;
          SCOPED_TRACE(testing::Message() << n_groups << " groups " << has_correction);
          std::vector<float> correction;
          if (has_correction) correction = RandomFloats(p.n_experts, 0.3f, &rng);
          const auto expected = [&](const RouteParams& params, const float* logits) {
            return ExactRoute(params, correction, logits);
          };
          ExpectRoutes(GetParam(), p, correction, expected, &rng);
          p.topk_least = 0.9f;
          ExpectRoutes(GetParam(), p, correction, expected, &rng);
        }
      }
    }
  }
}

// transformers' sparsemixer(), one expert after the other.
std::vector<double> ExactMixer(const RouteParams& p, const float* logits) {
  std::vector<double> x(logits, logits + p.n_experts), ids, weights;
  const std::vector<double> whole = x;
  for (size_t i = 0; i < p.n_chosen; ++i) {
    const size_t best = static_cast<size_t>(std::max_element(x.begin(), x.end()) - x.begin());
    double total = 0.0;
    for (size_t e = 0; e < x.size(); ++e) {
      const double factor = std::max(std::abs(whole[e]), x[best]);
      const bool is_far =
          (x[best] - whole[e]) / factor > 2.0 * static_cast<double>(p.router_jitter);
      if (!is_far && !std::isinf(x[e])) total += std::exp(x[e] - x[best]);
    }
    ids.push_back(static_cast<double>(best));
    weights.push_back(1.0 / total);
    x[best] = -std::numeric_limits<double>::infinity();
  }
  ids.insert(ids.end(), weights.begin(), weights.end());
  return ids;
}

TEST_P(ExpertsTest, Route_BySparseMixer_EqualsTheFormula) {
  std::mt19937 rng(47);
  for (const float jitter : {0.0f, 0.01f, 0.3f}) {
    RouteParams p;
    p.n_experts = 16;
    p.n_chosen = 2;
    p.route_score = RouteScore::kSparseMixer;
    p.router_jitter = jitter;
    ExpectRoutes(GetParam(), p, {}, ExactMixer, &rng);
  }
}

// Covers NaN, infinities and ties.
TEST_P(ExpertsTest, Route_DamagedLogits_GiveDifferentValidIds) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  const std::vector<std::vector<float>> rows = {{nan, nan, nan, nan, nan, nan},
                                                {0, nan, 1, 2, nan, 3},
                                                {inf, inf, -inf, -inf, 0, inf},
                                                {-inf, -inf, -inf, -inf, -inf, -inf},
                                                {1, 1, 1, 1, 1, 1}};
  constexpr uint32_t kExperts = 6, kChosen = 3;
  std::mt19937 rng(43);
  for (const RouteScore score :
       {RouteScore::kSoftmax, RouteScore::kSigmoid, RouteScore::kSparseMixer}) {
    if (score == RouteScore::kSparseMixer && GetParam().backend->host_kv == nullptr) {
      continue;  // Vulkan refuses it
    }
    ProgramBuilder builder(2, 5, 64);
    Step step{RouteParams()};
    auto& params = step.Get<RouteParams>();
    step.in = builder.AddValue(kExperts);
    step.out = builder.AddValue(2 * kChosen);
    params.n_experts = kExperts;
    params.n_chosen = kChosen;
    params.route_score = score;
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    float* to = session.ValueData(step.in);
    for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
    Batch batch(session.program(), {{0, 5}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    const float* topk = session.ValueData(step.out);
    for (size_t row = 0; row < rows.size(); ++row, topk += 2 * kChosen) {
      const std::set<float> ids(topk, topk + kChosen);
      EXPECT_EQ(kChosen, ids.size()) << row;
      for (const float id : ids) EXPECT_TRUE(id >= 0 && id < kExperts && id == std::floor(id));
    }
    // Ties go to the lower id.
    const float* equal = session.ValueData(step.out) + (rows.size() - 1) * 2 * kChosen;
    EXPECT_EQ((std::vector<float>{0, 1, 2}), std::vector<float>(equal, equal + kChosen));
  }
}

// A kExperts step with random weights, one type per expert, and its expected output.
struct ExpertsCase {
  static constexpr uint32_t kChosen = 2;

  struct Widths {
    uint32_t in, ffn, out;
  };

  ExpertsCase(const std::vector<DType>& types, const Widths& widths, uint32_t rows,
              bool weighs_input, std::mt19937* rng, bool accumulate = true, bool is_gated = true)
      : width(widths.in), ffn(widths.ffn), out_width(widths.out), builder(2, rows, 64) {
    auto& params = step.Get<ExpertsParams>();
    params.n_experts = static_cast<uint16_t>(types.size());
    params.n_chosen = kChosen;
    params.weighs_input = weighs_input;
    params.accumulate = accumulate;
    params.is_gated = is_gated;
    const uint32_t inner = is_gated ? 2 * ffn : ffn;
    step.in = builder.AddValue(width);
    step.out = builder.AddValue(out_width);
    params.topk = builder.AddValue(2 * kChosen);
    params.gathered = builder.AddValue(width);
    params.gate_up = builder.AddValue(inner);
    params.activated = is_gated ? builder.AddValue(ffn) : params.gate_up;
    params.expert_out = builder.AddValue(out_width);
    for (const DType dtype : types) {
      const bool has_bias = matrices.size() == 2;
      matrices.push_back(RandomMatrix(dtype, inner, width, has_bias, rng));
      matrices.push_back(RandomMatrix(dtype, out_width, ffn, has_bias, rng));
    }
    for (size_t i = 0; i < matrices.size(); ++i) {
      const WeightLayout layout = TargetLayout(PackTargets()[0], matrices[i].dtype);
      const WeightId id = builder.AddMatrix(matrices[i], layout);
      if (i == 0) params.weight = id;
    }
    builder.AddStep(step);
  }

  const ExpertsParams& params() const { return step.Get<ExpertsParams>(); }

  // Adds the weighted expert outputs of each row of x to `sums`.
  void Add(const std::vector<float>& x, const std::vector<float>& topk,
           std::vector<double>* sums) const {
    for (size_t row = 0; row < x.size() / width; ++row) {
      for (size_t i = 0; i < kChosen; ++i) {
        const auto e = static_cast<size_t>(topk[row * 2 * kChosen + i]);
        const auto weight = static_cast<double>(topk[(row * 2 + 1) * kChosen + i]);
        const double in_weight = params().weighs_input ? weight : 1.0;
        std::vector<double> in;
        for (size_t c = 0; c < width; ++c) {
          in.push_back(in_weight * static_cast<double>(x[row * width + c]));
        }
        const std::vector<double> gate_up = ExactMatmul(matrices[2 * e], in);
        std::vector<double> activated(ffn);
        for (size_t c = 0; c < ffn; ++c) {
          const double up = params().is_gated ? gate_up[ffn + c] : 1.0;
          activated[c] = gate_up[c] / (1.0 + std::exp(-gate_up[c])) * up;
        }
        const std::vector<double> out = ExactMatmul(matrices[2 * e + 1], activated);
        for (size_t c = 0; c < out_width; ++c) {
          (*sums)[row * out_width + c] += (params().weighs_input ? 1.0 : weight) * out[c];
        }
      }
    }
  }

  static std::vector<double> ExactMatmul(const Matrix& m, const std::vector<double>& v) {
    std::vector<double> y(m.rows);
    for (size_t r = 0; r < m.rows; ++r) {
      y[r] = m.bias.empty() ? 0.0 : static_cast<double>(m.bias[r]);
      for (size_t c = 0; c < m.cols; ++c) y[r] += m.exact[r * m.cols + c] * v[c];
    }
    return y;
  }

  const uint32_t width, ffn, out_width;
  ProgramBuilder builder;
  Step step{ExpertsParams()};
  std::vector<Matrix> matrices;
};

// Runs the case once per entry of `runs`, each with that many rows and new input.
void ExpectFormula(const BackendCase& backend, ExpertsCase* c, const std::vector<uint32_t>& runs,
                   double tolerance, std::mt19937* rng) {
  Session session(backend.backend, &c->builder, backend.n_threads);
  for (const uint32_t rows : runs) {
    SCOPED_TRACE(testing::Message() << rows << " rows");
    const auto x = RandomFloats(size_t{rows} * c->width, 1.0f, rng);
    const auto before = RandomFloats(size_t{rows} * c->out_width, 1.0f, rng);
    std::memcpy(session.ValueData(c->step.in), x.data(), x.size() * sizeof(float));
    std::memcpy(session.ValueData(c->step.out), before.data(), before.size() * sizeof(float));
    // The second-to-last expert gets no row; the first gets all rows but one at most.
    const auto n = static_cast<float>(c->params().n_experts);
    std::vector<float> topk;
    for (uint32_t row = 0; row < rows; ++row) {
      const float other = row % 3 == 0 ? 1 : row % 3 == 1 ? Min(2.0f, n - 1) : n - 1;
      const bool is_first = row != 5 || n < 3;
      topk.insert(topk.end(), {is_first ? 0.0f : 1.0f, is_first ? other : 2.0f,
                               0.1f + 0.02f * static_cast<float>(row), 0.3f});
    }
    std::memcpy(session.ValueData(c->params().topk), topk.data(), topk.size() * sizeof(float));
    Batch batch(session.program(), {{0, rows}}, rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    std::vector<double> expected(before.begin(), before.end());
    if (!c->params().accumulate) std::fill(expected.begin(), expected.end(), 0.0);
    c->Add(x, topk, &expected);
    ExpectNear(session.ValueData(c->step.out), expected, tolerance);
  }
}

// Integer weights quantise their activations to 8 bits twice.
constexpr double kIntegerTolerance = 2e-2;

// Covers one row, a few rows, and more than a tile.
TEST_P(ExpertsTest, Experts_EveryWeightType_EqualTheFormula) {
  std::mt19937 rng(42);
  for (const auto& [dtype, weighs_input] : {std::pair{DType::kF32, false},
                                            {DType::kF32, true},
                                            {DType::kF16, false},
                                            {DType::kInt8, false},
                                            {DType::kInt8, true},
                                            {DType::kInt4, false}}) {
    SCOPED_TRACE(DTypeName(dtype));
    ExpertsCase c(std::vector<DType>(5, dtype), {48, 36, 48}, 39, weighs_input, &rng);
    const bool is_integer = dtype == DType::kInt8 || dtype == DType::kInt4;
    ExpectFormula(GetParam(), &c, {1, 7, 39}, is_integer ? kIntegerTolerance : 2 * kTolerance,
                  &rng);
  }
}

TEST_P(ExpertsTest, Experts_AloneInASum_OverwriteTheOutput) {
  std::mt19937 rng(46);
  ExpertsCase c(std::vector<DType>(5, DType::kF32), {48, 36, 44}, 9, false, &rng,
                /*accumulate=*/false);
  ExpectFormula(GetParam(), &c, {1, 9, 4}, 2 * kTolerance, &rng);
}

TEST_P(ExpertsTest, Experts_WithoutAGate_EqualTheFormula) {
  std::mt19937 rng(48);
  for (const DType dtype : {DType::kF32, DType::kInt8}) {
    SCOPED_TRACE(DTypeName(dtype));
    ExpertsCase c(std::vector<DType>(5, dtype), {48, 37, 52}, 39, false, &rng,
                  /*accumulate=*/true, /*is_gated=*/false);
    ExpectFormula(GetParam(), &c, {1, 7, 39},
                  dtype == DType::kF32 ? 2 * kTolerance : kIntegerTolerance, &rng);
  }
}

// Matrices at unequal offsets, wider than a tile, with a column count that is not a multiple of 4.
TEST_P(ExpertsTest, Experts_OfDifferentTypes_EqualTheFormula) {
  std::mt19937 rng(44);
  ExpertsCase c({DType::kF32, DType::kBf16, DType::kInt4, DType::kInt8, DType::kInt8, DType::kF32},
                {77, 45, 70}, 17, false, &rng);
  ExpectFormula(GetParam(), &c, {2, 17}, kIntegerTolerance, &rng);
}

// More outputs than the grid of the few-row kernels has workgroups.
TEST_P(ExpertsTest, Experts_MoreOutputsThanAGrid_EqualTheFormula) {
  std::mt19937 rng(45);
  ExpertsCase c(std::vector<DType>(2, DType::kF32), {3, 5, 262201}, 9, false, &rng);
  ExpectFormula(GetParam(), &c, {1, 9}, 2 * kTolerance, &rng);
}

TEST_P(ExpertsTest, Experts_EveryShape_EqualTheFormula) {
  std::mt19937 rng(49);
  for (const MatrixShape& shape : kMatrixShapes) {
    for (const DType dtype : {DType::kF32, DType::kInt8}) {
      SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << DTypeName(dtype));
      ExpertsCase c(std::vector<DType>(4, dtype), {shape.cols, shape.rows, shape.cols}, 7, false,
                    &rng);
      ExpectFormula(GetParam(), &c, {7, 1},
                    dtype == DType::kF32 ? 2 * kTolerance : kIntegerTolerance, &rng);
    }
  }
}

// A row gets the same bits whatever else is in the run: see row_bits_test.cc.
class ExpertRowsTest : public BackendTest {
 protected:
  static constexpr uint32_t kRows = 40;

  struct Input {
    std::vector<float> x, before, topk;
  };
  // routes(row, i): the expert that a row chooses i-th.
  template <typename Routes>
  static Input MakeInput(const ExpertsCase& c, const Routes& routes, std::mt19937* rng) {
    Input input = {RandomFloats(size_t{kRows} * c.width, 1.0f, rng),
                   RandomFloats(size_t{kRows} * c.out_width, 1.0f, rng),
                   {}};
    for (uint32_t row = 0; row < kRows; ++row) {
      input.topk.insert(input.topk.end(),
                        {static_cast<float>(routes(row, 0)), static_cast<float>(routes(row, 1)),
                         0.1f + 0.02f * static_cast<float>(row), 0.3f});
    }
    return input;
  }

  // Runs rows [first, first + n) and returns their outputs.
  static std::vector<float> Run(Session* session, const ExpertsCase& c, const Input& input,
                                uint32_t first, uint32_t n, std::mt19937* rng,
                                const MatmulObserver* observer = nullptr) {
    const auto copy = [&](ValueId id, const std::vector<float>& from, size_t width) {
      std::memcpy(session->ValueData(id), from.data() + first * width, n * width * sizeof(float));
    };
    copy(c.step.in, input.x, c.width);
    copy(c.step.out, input.before, c.out_width);
    copy(c.params().topk, input.topk, 2 * ExpertsCase::kChosen);
    Batch batch(session->program(), {{0, n}}, rng);
    RunArgs args = batch.Args();
    args.observer = observer;
    EXPECT_EQ(Status::kOk, session->Run(args)) << session->message();
    const float* out = session->ValueData(c.step.out);
    return {out, out + size_t{n} * c.out_width};
  }

  // Compares runs of several rows, on 1 to 4 threads, with runs of one row on one thread.
  template <typename Routes>
  static void ExpectSameBits(ExpertsCase* c, const Routes& routes, std::mt19937* rng) {
    const Input input = MakeInput(*c, routes, rng);
    std::vector<float> expected;
    {
      Session alone(GetParam().backend, &c->builder, 1);
      for (uint32_t row = 0; row < kRows; ++row) {
        const std::vector<float> one = Run(&alone, *c, input, row, 1, rng);
        expected.insert(expected.end(), one.begin(), one.end());
      }
    }
    for (const uint32_t n_threads : {1u, 2u, 3u, 4u}) {
      Session together(GetParam().backend, &c->builder, n_threads);
      for (const uint32_t n : {1u, 2u, 5u, 13u, kRows}) {
        for (uint32_t first = 0; first + n <= kRows; first += n) {
          const std::vector<float> found = Run(&together, *c, input, first, n, rng);
          ASSERT_EQ(0, std::memcmp(found.data(), &expected[size_t{first} * c->out_width],
                                   found.size() * sizeof(float)))
              << "rows " << first << " to " << first + n << ", " << n_threads << " threads";
        }
      }
    }
  }
  // The tests run on the CPU backend only.
  static bool KeepsBits(DType dtype, bool splits) {
    return ((splits && IsInteger(dtype)) || test::RowsKeepTheirBits(dtype)) &&
           (kHasLowBits || FindCodeType(dtype) == nullptr);
  }
};

TEST_P(ExpertRowsTest, EveryWeightType_TheSameBitsAloneAndTogether) {
  std::mt19937 rng(51);
  const auto spread = [](uint32_t row, uint32_t i) { return (row * 7 + i * (1 + row % 4)) % 5; };
  for (const DType dtype : kWeightTypes) {
    for (const bool splits : {false, true}) {
      if (!KeepsBits(dtype, splits)) continue;
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << (splits ? " split" : ""));
      ExpertsCase c(std::vector<DType>(5, dtype), {48, 36, 52}, kRows, splits, &rng,
                    /*accumulate=*/!splits);
      if (splits) c.builder.SplitRows();
      ExpectSameBits(&c, spread, &rng);
    }
  }
}

// Several groups of experts: more than a group has, and more chosen rows than the values have.
TEST_P(ExpertRowsTest, ManyExperts_TheSameBitsAloneAndTogether) {
  std::mt19937 rng(52);
  ExpertsCase c(std::vector<DType>(70, DType::kInt4), {64, 32, 64}, kRows, false, &rng);
  ExpectSameBits(
      &c, [](uint32_t row, uint32_t i) { return (row * 3 + i * 31) % 70; }, &rng);
}

// Every row on the same two experts, chosen in either order; the others have none.
TEST_P(ExpertRowsTest, AllRowsOnTwoExperts_TheSameBitsAloneAndTogether) {
  std::mt19937 rng(53);
  for (const DType dtype : {DType::kInt8, DType::kF16}) {
    if (!KeepsBits(dtype, false)) continue;
    ExpertsCase c(std::vector<DType>(5, dtype), {172, 45, 172}, kRows, false, &rng);
    ExpectSameBits(
        &c, [](uint32_t row, uint32_t i) { return (row + i) % 2 == 0 ? 1u : 4u; }, &rng);
  }
}

TEST_P(ExpertRowsTest, OfDifferentTypes_TheSameBitsAloneAndTogether) {
  if (!KeepsBits(DType::kF32, false) || !KeepsBits(DType::kInt8, false)) {
    GTEST_SKIP() << "this CPU's kernels round one row and several differently";
  }
  std::mt19937 rng(54);
  ExpertsCase c({DType::kF32, DType::kBf16, DType::kInt4, DType::kInt8, DType::kInt8, DType::kF32},
                {77, 45, 70}, kRows, true, &rng);
  ExpectSameBits(
      &c, [](uint32_t row, uint32_t i) { return (row + 2 * i) % 6; }, &rng);
}

// What calibration sees: an expert's rows, in their order, before each of its matmuls, and one
// expert after the other.
TEST_P(ExpertRowsTest, Observer_SeesTheRowsOfEachExpert) {
  struct Seen {
    std::vector<std::pair<WeightId, std::vector<float>>> inputs;
    const ExpertsCase* c;
    static void On(void* user, WeightId weight, const float* rows, uint32_t n, const float* sums) {
      auto* seen = static_cast<Seen*>(user);
      const uint32_t cols = seen->c->matrices[weight - seen->c->params().weight].cols;
      seen->inputs.push_back({weight, {rows, rows + size_t{n} * cols}});
      EXPECT_EQ(nullptr, sums);
    }
  };
  for (const bool weighs_input : {false, true}) {
    std::mt19937 rng(55);
    ExpertsCase c(std::vector<DType>(5, DType::kF32), {48, 36, 52}, kRows, weighs_input, &rng);
    const auto routes = [](uint32_t row, uint32_t i) { return (row + i) % 3 + 1; };
    const Input input = MakeInput(c, routes, &rng);
    Session session(GetParam().backend, &c.builder, GetParam().n_threads);
    for (const uint32_t n : {1u, kRows}) {
      Seen seen = {{}, &c};
      const MatmulObserver observer = {Seen::On, &seen};
      Run(&session, c, input, 0, n, &rng, &observer);
      uint32_t n_found = 0;
      for (uint32_t e = 0; e < 5; ++e) {
        std::vector<float> rows;
        for (uint32_t row = 0; row < n; ++row) {
          for (uint32_t i = 0; i < 2; ++i) {
            if (routes(row, i) != e) continue;
            const float factor = weighs_input ? input.topk[4 * row + 2 + i] : 1.0f;
            for (uint32_t k = 0; k < c.width; ++k) {
              rows.push_back(input.x[row * c.width + k] * factor);
            }
          }
        }
        if (rows.empty()) continue;
        const auto at = [&](WeightId id) {
          return std::find_if(seen.inputs.begin(), seen.inputs.end(),
                              [&](const auto& one) { return one.first == id; });
        };
        const auto up = at(c.params().gate_up_of(e)), down = at(c.params().down_of(e));
        ASSERT_NE(seen.inputs.end(), up);
        ASSERT_NE(seen.inputs.end(), down);
        EXPECT_EQ(static_cast<std::ptrdiff_t>(n_found), up - seen.inputs.begin());
        EXPECT_EQ(up + 1, down);
        EXPECT_EQ(rows, up->second) << "expert " << e;
        EXPECT_EQ(rows.size() / c.width, down->second.size() / c.ffn);
        n_found += 2;
      }
      EXPECT_EQ(n_found, seen.inputs.size());
    }
  }
}

std::vector<BackendCase> Cpus() {
  std::vector<BackendCase> cases = AllBackends();
  std::erase_if(cases, [](const BackendCase& c) { return c.backend != CpuBackend(); });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Backends, ExpertRowsTest, testing::ValuesIn(Cpus()),
                         [](const auto& i) { return i.param.name; });

INSTANTIATE_TEST_SUITE_P(Backends, ExpertsTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance
