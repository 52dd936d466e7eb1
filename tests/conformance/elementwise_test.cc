// kRmsNorm, kRopeAngles, kGatedAct, and the functions on logits.
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "hwy/targets.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/exp_f32.h"
#include "kernels/reference/backend_reference.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

class ElementwiseTest : public BackendTest {};

TEST_P(ElementwiseTest, RmsNorm_OddWidths_EqualTheFormula) {
  std::mt19937 rng(11);
  for (uint32_t width : {1u, 8u, 17u, 172u, 576u, 1021u}) {
    ProgramBuilder builder(2, 33, 64);
    const auto weight = RandomFloats(width, 1.0f, &rng);
    Step step;
    step.op = Op::kRmsNorm;
    step.in = builder.AddValue(width);
    step.out = builder.AddValue(width);
    step.weight = builder.AddVector(weight);
    step.epsilon = 1e-6f;
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    for (float scale : {1e-6f, 1.0f, 1e4f}) {
      SCOPED_TRACE(width);
      const auto x = RandomFloats(33 * width, scale, &rng);
      std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
      Batch batch(session.program(), {{0, 33}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
      std::vector<double> expected(x.size());
      for (uint32_t r = 0; r < 33; ++r) {
        double sum = 0.0;
        for (uint32_t c = 0; c < width; ++c) {
          sum += std::pow(static_cast<double>(x[r * width + c]), 2);
        }
        for (uint32_t c = 0; c < width; ++c) {
          expected[r * width + c] = static_cast<double>(x[r * width + c]) /
                                    std::sqrt(sum / width + static_cast<double>(1e-6f)) *
                                    static_cast<double>(weight[c]);
        }
      }
      ExpectNear(session.ValueData(step.out), expected, kTolerance);
    }
  }
}

TEST_P(ElementwiseTest, RopeAngles_Positions_EqualTheFormula) {
  std::mt19937 rng(12);
  for (uint32_t dim : {2u, 4u, 64u, 80u}) {
    ProgramBuilder builder(2, 16, 100000);
    const float amplitude = 1.2079f;
    Step step;
    step.op = Op::kRopeAngles;
    step.rope = static_cast<uint16_t>(builder.AddRope(dim, 10000.0f, amplitude));
    step.out = builder.AddValue(dim);
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    Batch batch(session.program(), {{99990, 4}, {0, 3}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    const uint32_t positions[] = {99990, 99991, 99992, 99993, 0, 1, 2};
    std::vector<double> expected;
    for (uint32_t p : positions) {
      const auto& freq = session.program().ropes[step.rope].inv_freq;
      for (auto f :
           {static_cast<double (*)(double)>(std::cos), static_cast<double (*)(double)>(std::sin)}) {
        for (float w : freq) {
          // The angle is rounded to f32 first, as the models are trained.
          const float angle = static_cast<float>(p) * w;
          expected.push_back(f(static_cast<double>(angle)) * static_cast<double>(amplitude));
        }
      }
    }
    ExpectNear(session.ValueData(step.out), expected, kTolerance);
  }
}

TEST_P(ElementwiseTest, GatedAct_Silu_WithinTheDocumentedError) {
  std::mt19937 rng(13);
  for (uint32_t width : {1u, 15u, 172u, 1536u}) {
    ProgramBuilder builder(2, 16, 64);
    Step step;
    step.op = Op::kGatedAct;
    step.in = builder.AddValue(2 * width);
    step.out = builder.AddValue(width);
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    auto in = RandomFloats(16 * 2 * width, 8.0f, &rng);
    in[0] = 0.0f;
    in[2 * width] = 80.0f;
    in[4 * width] = -80.0f;
    in[6 * width] = -1000.0f;
    in[8 * width] = 1e30f;
    std::memcpy(session.ValueData(step.in), in.data(), in.size() * sizeof(float));
    Batch batch(session.program(), {{0, 16}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
    for (uint32_t r = 0; r < 16; ++r) {
      for (uint32_t c = 0; c < width; ++c) {
        const auto gate = static_cast<double>(in[r * 2 * width + c]);
        const auto up = static_cast<double>(in[r * 2 * width + width + c]);
        const double expected = gate / (1.0 + std::exp(-gate)) * up;
        // Relative; below e^-87 the result may be anything down to 0.
        const double allowed = std::fabs(expected) * std::ldexp(1.0, -21) + 1e-34 * std::fabs(up);
        ASSERT_NEAR(static_cast<double>(session.ValueData(step.out)[r * width + c]), expected,
                    allowed)
            << gate;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ElementwiseTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

TEST(ExpTest, ExpF32_WholeRange_WithinTheDocumentedError) {
  double worst = 0.0;
  for (float x = -87.33f; x < 88.36f; x += 0.00037f) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(ExpF32(x)) / exact - 1.0));
  }
  EXPECT_LT(worst, std::ldexp(1.0, -22));
  EXPECT_EQ(ExpF32(0.0f), 1.0f);
  EXPECT_EQ(ExpF32(-88.0f), 0.0f);
  EXPECT_EQ(ExpF32(-INFINITY), 0.0f);
  EXPECT_EQ(ExpF32(std::numeric_limits<float>::quiet_NaN()), 0.0f);
  EXPECT_TRUE(std::isfinite(ExpF32(INFINITY)));
}

class LogitsOpsTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  const LogitsOps& scalar = *ReferenceLogitsOps();
  const LogitsOps& simd = *CpuLogitsOps();
};

TEST_P(LogitsOpsTest, AllFunctions_RandomAndSpecialValues_SameBitsAsScalar) {
  std::mt19937 rng(14);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t n : {1u, 2u, 15u, 16u, 17u, 100u, 1021u, 49152u}) {
    for (int variant = 0; variant < 6; ++variant) {
      SCOPED_TRACE(std::to_string(n) + " variant " + std::to_string(variant));
      auto x = RandomFloats(n, 5.0f, &rng);
      if (variant == 1) x.assign(n, -INFINITY);
      if (variant == 2) x.assign(n, nan);
      if (variant == 3) x[n / 2] = x[n - 1] = 100.0f;  // a tie
      if (variant == 4) x[0] = nan, x[n - 1] = nan;
      if (variant == 5) x.assign(n, 2.5f);
      EXPECT_EQ(simd.argmax(x.data(), n), scalar.argmax(x.data(), n));
      for (size_t capacity : {size_t{0}, size_t{3}, n}) {
        std::vector<uint32_t> a(capacity + 1, 7), b(capacity + 1, 7);
        const size_t count = scalar.collect_at_least(x.data(), n, 2.5f, a.data(), capacity);
        EXPECT_EQ(simd.collect_at_least(x.data(), n, 2.5f, b.data(), capacity), count);
        EXPECT_EQ(a, b);
      }
      auto y = x, z = x;
      const double s = scalar.exp_sum(y.data(), n, 30.0f, 0.7f);
      const double t = simd.exp_sum(z.data(), n, 30.0f, 0.7f);
      EXPECT_EQ(std::memcmp(&s, &t, sizeof s), 0) << s << " " << t;
      EXPECT_EQ(std::memcmp(y.data(), z.data(), n * sizeof(float)), 0);
    }
  }
}

TEST_P(LogitsOpsTest, Argmax_TiesAndNan_LowestNumberWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {nan, 1.0f, 3.0f, 3.0f, nan, -INFINITY};
  EXPECT_EQ(simd.argmax(x.data(), x.size()), 2u);
  EXPECT_EQ(scalar.argmax(x.data(), x.size()), 2u);
}

INSTANTIATE_TEST_SUITE_P(Simd, LogitsOpsTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance
