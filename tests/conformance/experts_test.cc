// kRoute and kExperts.
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/route.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

class ExpertsTest : public HostBackendTest {};

TEST_P(ExpertsTest, Route_ManyRows_TheLargestScores) {
  std::mt19937 rng(41);
  for (const auto& [n_experts, n_chosen] : {std::pair{1u, 1u}, {4u, 2u}, {8u, 8u}, {128u, 8u}}) {
    for (const auto& [renormalise, score] : {std::pair{false, RouteScore::kSoftmax},
                                             {true, RouteScore::kSoftmax},
                                             {false, RouteScore::kSigmoid},
                                             {true, RouteScore::kSigmoid}}) {
      SCOPED_TRACE(testing::Message() << n_chosen << " of " << n_experts);
      ProgramBuilder builder(2, 17, 64);
      Step step;
      step.op = Op::kRoute;
      step.in = builder.AddValue(n_experts);
      step.out = builder.AddValue(2 * n_chosen);
      step.n_experts = static_cast<uint16_t>(n_experts);
      step.n_chosen = static_cast<uint16_t>(n_chosen);
      step.renormalise = renormalise;
      step.route_score = score;
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
        const float* routes = session.ValueData(step.out) + row * 2 * n_chosen;
        for (uint32_t i = 0; i < n_chosen; ++i) {
          ASSERT_EQ(static_cast<float>(sorted[i].second), routes[i]) << "row " << row;
          const double whole = renormalise ? chosen : score == RouteScore::kSoftmax ? total : 1.0;
          ASSERT_NEAR(-sorted[i].first / whole, static_cast<double>(routes[n_chosen + i]),
                      kTolerance);
        }
      }
    }
  }
}

TEST_P(ExpertsTest, Experts_EveryWeightType_EqualTheFormula) {
  std::mt19937 rng(42);
  constexpr uint32_t kExperts = 5, kChosen = 2, kWidth = 48, kFfn = 36, kRows = 9;
  for (const auto& [dtype, weighs_input] : {std::pair{DType::kF32, false},
                                            {DType::kF32, true},
                                            {DType::kF16, false},
                                            {DType::kInt8, false},
                                            {DType::kInt8, true},
                                            {DType::kInt4, false}}) {
    SCOPED_TRACE(DTypeName(dtype));
    ProgramBuilder builder(2, kRows, 64);
    Step step;
    step.op = Op::kExperts;
    step.accumulate = true;
    step.n_experts = kExperts;
    step.n_chosen = kChosen;
    step.weighs_input = weighs_input;
    step.in = builder.AddValue(kWidth);
    step.out = builder.AddValue(kWidth);
    step.routes = builder.AddValue(2 * kChosen);
    step.scratch = builder.AddValue(kWidth);
    builder.AddValue(2 * kFfn);
    builder.AddValue(kFfn);
    builder.AddValue(kWidth);
    std::vector<Matrix> matrices;
    const WeightLayout layout = TargetLayout(PackTargets()[0], dtype);
    for (uint32_t e = 0; e < kExperts; ++e) {
      matrices.push_back(RandomMatrix(dtype, 2 * kFfn, kWidth, e == 1, &rng));
      matrices.push_back(RandomMatrix(dtype, kWidth, kFfn, e == 1, &rng));
    }
    for (size_t i = 0; i < matrices.size(); ++i) {
      const WeightId id = builder.AddMatrix(matrices[i], layout);
      if (i == 0) step.weight = id;
    }
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const auto x = RandomFloats(kRows * kWidth, 1.0f, &rng);
    const auto before = RandomFloats(kRows * kWidth, 1.0f, &rng);
    std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
    std::memcpy(session.ValueData(step.out), before.data(), before.size() * sizeof(float));
    // Expert 3 gets no row, expert 0 all but one.
    std::vector<float> routes;
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint32_t other = row % 3 == 0 ? 1 : row % 3 == 1 ? 2 : 4;
      const bool first = row != 5;
      routes.insert(routes.end(), {first ? 0.0f : 1.0f, static_cast<float>(first ? other : 2),
                                   0.1f + 0.05f * static_cast<float>(row), 0.3f});
    }
    std::memcpy(session.ValueData(step.routes), routes.data(), routes.size() * sizeof(float));
    Batch batch(session.program(), {{0, kRows}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();

    const auto product = [](const Matrix& m, const std::vector<double>& v) {
      std::vector<double> y(m.rows);
      for (uint32_t r = 0; r < m.rows; ++r) {
        y[r] = m.bias.empty() ? 0.0 : static_cast<double>(m.bias[r]);
        for (uint32_t c = 0; c < m.cols; ++c) y[r] += m.exact[size_t{r} * m.cols + c] * v[c];
      }
      return y;
    };
    std::vector<double> expected(before.begin(), before.end());
    for (uint32_t row = 0; row < kRows; ++row) {
      for (uint32_t i = 0; i < kChosen; ++i) {
        const auto e = static_cast<size_t>(routes[row * 4 + i]);
        const auto weight = static_cast<double>(routes[row * 4 + kChosen + i]);
        std::vector<double> in(x.begin() + row * kWidth, x.begin() + (row + 1) * kWidth);
        for (double& v : in) v *= weighs_input ? weight : 1.0;
        const std::vector<double> gate_up = product(matrices[2 * e], in);
        std::vector<double> activated(kFfn);
        for (uint32_t c = 0; c < kFfn; ++c) {
          activated[c] = gate_up[c] / (1.0 + std::exp(-gate_up[c])) * gate_up[kFfn + c];
        }
        const std::vector<double> out = product(matrices[2 * e + 1], activated);
        for (uint32_t c = 0; c < kWidth; ++c) {
          expected[row * kWidth + c] += (weighs_input ? 1.0 : weight) * out[c];
        }
      }
    }
    // Integer weights have their activations rounded to 8 bits, twice.
    const bool is_integer = dtype == DType::kInt8 || dtype == DType::kInt4;
    ExpectNear(session.ValueData(step.out), expected, is_integer ? 2e-2 : 2 * kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ExpertsTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

TEST(RouteTest, EqualAndDamagedLogits_GiveDifferentValidIds) {
  std::vector<float> equal(6, 1.0f), routes(6);
  Route({6, 3, true, RouteScore::kSoftmax}, equal.data(), routes.data());
  EXPECT_EQ((std::vector<float>{0, 1, 2}), std::vector<float>(routes.begin(), routes.begin() + 3));
  EXPECT_FLOAT_EQ(1.0f / 3, routes[3]);
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  for (std::vector<float> logits :
       {std::vector<float>(6, nan), std::vector<float>{0, nan, 1, 2, nan, 3},
        std::vector<float>{inf, inf, -inf, -inf, 0, inf}}) {
    for (RouteScore score : {RouteScore::kSoftmax, RouteScore::kSigmoid}) {
      std::vector<float> damaged = logits;
      Route({6, 3, false, score}, damaged.data(), routes.data());
      const std::set<float> ids(routes.begin(), routes.begin() + 3);
      EXPECT_EQ(3u, ids.size());
      for (float id : ids) EXPECT_TRUE(id >= 0 && id < 6);
    }
  }
}

}  // namespace
}  // namespace arn::conformance
