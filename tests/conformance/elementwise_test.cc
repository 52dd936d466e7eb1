// kNorm, kRopeAngles, kGatedAct, kAct, kEmbed, kLogits, and the LogitsOps.
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "hwy/targets.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/math/erf_f32.h"
#include "kernels/math/exp_f32.h"
#include "kernels/math/tanh_f32.h"
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
    Step step{NormParams()};
    auto& params = step.Get<NormParams>();
    step.in = builder.AddValue(width);
    step.out = builder.AddValue(width);
    params.weight = builder.AddVector(weight);
    params.epsilon = 1e-6f;
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

// Each group has weights of its own.
TEST_P(ElementwiseTest, RmsNorm_OfGroups_EqualsTheFormula) {
  std::mt19937 rng(15);
  for (const uint32_t group : {1u, 5u, 24u}) {
    constexpr uint32_t kGroups = 3, kRows = 7;
    const uint32_t width = kGroups * group;
    ProgramBuilder builder(2, kRows, 64);
    const auto weight = RandomFloats(width, 1.0f, &rng);
    Step step{NormParams()};
    auto& params = step.Get<NormParams>();
    step.in = step.out = builder.AddValue(width);
    params.weight = builder.AddVector(weight);
    params.epsilon = 1e-3f;
    params.group = group;
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const auto x = RandomFloats(size_t{kRows} * width, 1.0f, &rng);
    std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
    Batch batch(session.program(), {{0, kRows}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    std::vector<double> expected(x.size());
    for (uint32_t first = 0; first < x.size(); first += group) {
      double sum = 0.0;
      for (uint32_t c = 0; c < group; ++c) sum += std::pow(static_cast<double>(x[first + c]), 2);
      for (uint32_t c = 0; c < group; ++c) {
        expected[first + c] = static_cast<double>(x[first + c]) /
                              std::sqrt(sum / group + static_cast<double>(1e-3f)) *
                              static_cast<double>(weight[first % width + c]);
      }
    }
    ExpectNear(session.ValueData(step.out), expected, kTolerance);
  }
}

TEST_P(ElementwiseTest, Norm_BothKindsInPlaceAndAdded_EqualTheFormula) {
  std::mt19937 rng(14);
  for (uint32_t width : {1u, 8u, 17u, 172u, 1021u}) {
    for (NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
      for (bool accumulate : {false, true}) {
        SCOPED_TRACE(testing::Message() << width << (accumulate ? " added" : ""));
        ProgramBuilder builder(2, 5, 64);
        const auto weight = RandomFloats(width, 1.0f, &rng), bias = RandomFloats(width, 1.0f, &rng);
        Step step{NormParams()};
        auto& params = step.Get<NormParams>();
        params.kind = kind;
        params.accumulate = accumulate;
        step.in = builder.AddValue(width);
        step.out = builder.AddValue(width);
        params.weight = builder.AddVector(weight);
        if (kind == NormKind::kLayer) params.bias = builder.AddVector(bias);
        params.epsilon = 1e-5f;
        builder.AddStep(step);
        Session session(GetParam().backend, &builder, GetParam().n_threads);
        auto x = RandomFloats(5 * width, 1.0f, &rng);
        for (float& e : x) e += 3.0f;  // a mean far from zero
        const auto before = RandomFloats(x.size(), 1.0f, &rng);
        std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
        std::memcpy(session.ValueData(step.out), before.data(), x.size() * sizeof(float));
        Batch batch(session.program(), {{0, 5}}, &rng);
        ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
        std::vector<double> expected(x.size());
        for (uint32_t r = 0; r < 5; ++r) {
          const std::vector<double> row(x.begin() + r * width, x.begin() + (r + 1) * width);
          double mean = 0.0, square = 0.0;
          if (kind == NormKind::kLayer) {
            for (double e : row) mean += e / width;
          }
          for (double e : row) square += (e - mean) * (e - mean) / width;
          for (uint32_t c = 0; c < width; ++c) {
            double y = (row[c] - mean) / std::sqrt(square + static_cast<double>(params.epsilon)) *
                       static_cast<double>(weight[c]);
            if (kind == NormKind::kLayer) y += static_cast<double>(bias[c]);
            if (accumulate) y += static_cast<double>(before[r * width + c]);
            expected[r * width + c] = y;
          }
        }
        // Subtracting the mean cancels digits: the values have its magnitude.
        ExpectNear(session.ValueData(step.out), expected, 4 * kTolerance);
      }
    }
  }
}

TEST_P(ElementwiseTest, RopeAngles_Positions_EqualTheFormula) {
  std::mt19937 rng(12);
  for (uint32_t dim : {2u, 4u, 64u, 80u}) {
    ProgramBuilder builder(2, 16, 100000);
    const float amplitude = 1.2079f;
    Step step{RopeAnglesParams()};
    auto& params = step.Get<RopeAnglesParams>();
    params.rope = static_cast<uint16_t>(builder.AddRope(dim, 10000.0f, amplitude));
    step.out = builder.AddValue(dim);
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    Batch batch(session.program(), {{99990, 4}, {0, 3}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    const uint32_t positions[] = {99990, 99991, 99992, 99993, 0, 1, 2};
    std::vector<double> expected;
    for (uint32_t p : positions) {
      const auto& freq = session.program().ropes[params.rope].inv_freq;
      for (auto f :
           {static_cast<double (*)(double)>(std::cos), static_cast<double (*)(double)>(std::sin)}) {
        for (float w : freq) {
          // The angle is rounded to f32 first, as in training.
          const float angle = static_cast<float>(p) * w;
          expected.push_back(f(static_cast<double>(angle)) * static_cast<double>(amplitude));
        }
      }
    }
    ExpectNear(session.ValueData(step.out), expected, kTolerance);
  }
}

TEST_P(ElementwiseTest, RopeAngles_WithAxes_TurnEachPairByItsOwnPosition) {
  std::mt19937 rng(14);
  const std::vector<uint8_t> axes = {0, 1, 2, 0, 1, 2, 2, 2, 1, 0};
  const auto dim = static_cast<uint32_t>(2 * axes.size());
  ProgramBuilder builder(2, 16, 1000);
  Step step{RopeAnglesParams()};
  auto& params = step.Get<RopeAnglesParams>();
  params.rope = static_cast<uint16_t>(
      builder.AddRope(dim, 10000.0f, 1.0f, Span<const uint8_t>(axes.data(), axes.size())));
  step.out = builder.AddValue(dim);
  builder.AddStep(step);
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  Batch batch(session.program(), {{900, 3}, {0, 2}}, &rng);
  // Without positions by axis: a row's own on all of them.
  const std::vector<uint32_t> plain = {900, 900, 900, 901, 901, 901, 902, 902,
                                       902, 0,   0,   0,   1,   1,   1};
  const std::vector<uint32_t> by_axis = {7, 9, 8, 7, 9, 999, 7, 10, 8, 0, 0, 0, 0, 1, 500};
  for (const bool has_own : {false, true}) {
    RunArgs args = batch.Args();
    if (has_own) args.axis_positions = {by_axis.data(), by_axis.size()};
    ASSERT_EQ(session.Run(args), Status::kOk) << session.message();
    std::vector<double> expected;
    const auto& freq = session.program().ropes[params.rope].inv_freq;
    for (size_t row = 0; row < 5; ++row) {
      for (auto f :
           {static_cast<double (*)(double)>(std::cos), static_cast<double (*)(double)>(std::sin)}) {
        for (size_t i = 0; i < axes.size(); ++i) {
          const uint32_t p = (has_own ? by_axis : plain)[row * kRopeAxes + axes[i]];
          expected.push_back(f(static_cast<double>(static_cast<float>(p) * freq[i])));
        }
      }
    }
    ExpectNear(session.ValueData(step.out), expected, kTolerance);
    args.axis_positions = {by_axis.data(), by_axis.size() - 1};
    EXPECT_EQ(Status::kBadArgument, session.Run(args));
  }
}

TEST_P(ElementwiseTest, Multiply_ByColumnsAndConstants_EqualsTheFormula) {
  std::mt19937 rng(16);
  constexpr uint32_t kRows = 5, kWidth = 70, kOther = 90, kFirst = 13;
  for (const bool has_value : {false, true}) {
    for (const bool has_scale : {false, true}) {
      SCOPED_TRACE(testing::Message() << "value " << has_value << " scale " << has_scale);
      ProgramBuilder builder(2, kRows, 64);
      const ValueId x = builder.AddValue(kWidth), by = builder.AddValue(kOther);
      MultiplyParams multiply;
      multiply.factor = 1.5f;
      multiply.first = kFirst;
      if (has_value) multiply.by = by;
      if (has_scale) multiply.scale = builder.AddVector({-0.75f});
      builder.AddStep(Step(multiply, x));
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      const auto a = RandomFloats(size_t{kRows} * kWidth, 1.0f, &rng);
      const auto b = RandomFloats(size_t{kRows} * kOther, 1.0f, &rng);
      std::memcpy(session.ValueData(x), a.data(), a.size() * sizeof(float));
      std::memcpy(session.ValueData(by), b.data(), b.size() * sizeof(float));
      Batch batch(session.program(), {{0, kRows}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
      std::vector<double> expected;
      for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t i = 0; i < kWidth; ++i) {
          double y = 1.5 * static_cast<double>(a[row * kWidth + i]);
          if (has_scale) y *= -0.75;
          if (has_value) y *= static_cast<double>(b[row * kOther + kFirst + i]);
          expected.push_back(y);
        }
      }
      ExpectNear(session.ValueData(x), expected, kTolerance);
    }
  }
}

TEST_P(ElementwiseTest, GatedAct_Silu_WithinTheDocumentedError) {
  std::mt19937 rng(13);
  for (uint32_t width : {1u, 15u, 172u, 1536u}) {
    ProgramBuilder builder(2, 16, 64);
    Step step{GatedActParams()};
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
        // Relative error. Below e^-87 any result down to 0 is allowed.
        const double allowed = std::fabs(expected) * std::ldexp(1.0, -21) + 1e-34 * std::fabs(up);
        ASSERT_NEAR(static_cast<double>(session.ValueData(step.out)[r * width + c]), expected,
                    allowed)
            << gate;
      }
    }
  }
}

double ExactActivation(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu: return x / (1.0 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kClampedSwiglu:  // only gated
    case Activation::kXielu: break;   // has parameters
    case Activation::kRelu: return std::fmax(x, 0.0);
    case Activation::kReluSquared: return x > 0.0 ? x * x : 0.0;
    case Activation::kQuickGelu: return x / (1.0 + std::exp(-1.702 * x));
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSigmoid: return 1.0 / (1.0 + std::exp(-x));
    case Activation::kMish:
      return x * std::tanh(std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
  }
  return NAN;
}

TEST_P(ElementwiseTest, ScaleRow_EqualsTheFormula) {
  std::mt19937 rng(16);
  for (const uint32_t width : {1u, 15u, 172u}) {
    SCOPED_TRACE(width);
    ProgramBuilder builder(2, 7, 64);
    Step step{ScaleRowParams()};
    const ValueId scale = step.Get<ScaleRowParams>().scale = builder.AddValue(1);
    step.in = builder.AddValue(width);
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const auto x = RandomFloats(7 * width, 3.0f, &rng);
    const float scales[7] = {-200.0f, -3.0f, -0.0f, 0.4f, 1.0f, 9.0f, 200.0f};
    std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
    std::memcpy(session.ValueData(scale), scales, sizeof scales);
    Batch batch(session.program(), {{0, 7}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); ++i) {
      expected.push_back(static_cast<double>(x[i]) /
                         (1.0 + std::exp(-static_cast<double>(scales[i / width]))));
    }
    ExpectNear(session.ValueData(step.in), expected, kTolerance);
  }
}

TEST_P(ElementwiseTest, Activations_GatedAndPlain_EqualTheFormula) {
  std::mt19937 rng(15);
  // Covers every Activation: a backend that misses one fails here.
  for (uint32_t number = 0; number < kActivationCount; ++number) {
    const auto activation = static_cast<Activation>(number);
    // Tested below.
    if (activation == Activation::kClampedSwiglu || activation == Activation::kXielu) continue;
    for (uint32_t width : {1u, 15u, 172u}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(activation) << " width " << width);
      ProgramBuilder builder(2, 16, 64);
      Step gated{GatedActParams()};
      Step plain{ActParams()};
      gated.Get<GatedActParams>().activation = plain.Get<ActParams>().activation = activation;
      gated.in = builder.AddValue(2 * width);
      gated.out = builder.AddValue(width);
      plain.in = builder.AddValue(width);
      builder.AddStep(gated);
      builder.AddStep(plain);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      auto in = RandomFloats(16 * 2 * width, 3.0f, &rng), x = RandomFloats(16 * width, 3.0f, &rng);
      in[0] = 0.0f;
      in[2 * width] = 80.0f;
      in[4 * width] = -80.0f;
      x[0] = -0.0f;
      x[width] = 200.0f;
      x[2 * width] = -200.0f;
      std::memcpy(session.ValueData(gated.in), in.data(), in.size() * sizeof(float));
      std::memcpy(session.ValueData(plain.in), x.data(), x.size() * sizeof(float));
      Batch batch(session.program(), {{0, 16}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
      std::vector<double> expected_gated, expected_plain;
      for (uint32_t r = 0; r < 16; ++r) {
        for (uint32_t c = 0; c < width; ++c) {
          const auto gate = static_cast<double>(in[r * 2 * width + c]);
          const auto up = static_cast<double>(in[r * 2 * width + width + c]);
          expected_gated.push_back(ExactActivation(activation, gate) * up);
          expected_plain.push_back(
              ExactActivation(activation, static_cast<double>(x[r * width + c])));
        }
      }
      ExpectNear(session.ValueData(gated.out), expected_gated, kTolerance);
      ExpectNear(session.ValueData(plain.in), expected_plain, kTolerance);
    }
  }
}

TEST_P(ElementwiseTest, GatedAct_ClampedSwiglu_EqualsTheFormula) {
  std::mt19937 rng(17);
  for (uint32_t width : {1u, 15u, 172u}) {
    for (float limit : {7.0f, 0.5f}) {
      ProgramBuilder builder(2, 9, 64);
      Step step{GatedActParams()};
      auto& params = step.Get<GatedActParams>();
      params.activation = Activation::kClampedSwiglu;
      params.activation_limit = limit;
      step.in = builder.AddValue(2 * width);
      step.out = builder.AddValue(width);
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      auto in = RandomFloats(9 * 2 * width, 10.0f, &rng);
      in[0] = -90.0f;
      in[2 * width] = 90.0f;
      std::memcpy(session.ValueData(step.in), in.data(), in.size() * sizeof(float));
      Batch batch(session.program(), {{0, 9}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
      std::vector<double> expected;
      for (uint32_t r = 0; r < 9; ++r) {
        for (uint32_t c = 0; c < width; ++c) {
          const auto most = static_cast<double>(limit);
          const double gate = std::fmin(static_cast<double>(in[r * 2 * width + c]), most);
          const double up = static_cast<double>(in[r * 2 * width + width + c]);
          expected.push_back(gate / (1.0 + std::exp(-1.702 * gate)) *
                             (1.0 + std::fmax(-most, std::fmin(up, most))));
        }
      }
      ExpectNear(session.ValueData(step.out), expected, kTolerance);
    }
  }
}

TEST_P(ElementwiseTest, Act_Xielu_EqualsTheFormula) {
  std::mt19937 rng(18);
  const std::vector<float> parameters = {0.7f, -0.4f, 0.5f, -1e-6f};
  const auto softplus = [](float x) { return std::log1p(std::exp(static_cast<double>(x))); };
  for (uint32_t width : {1u, 15u, 172u}) {
    ProgramBuilder builder(2, 9, 64);
    Step step{ActParams()};
    auto& params = step.Get<ActParams>();
    params.activation = Activation::kXielu;
    params.parameters = builder.AddVector(parameters);
    step.in = builder.AddValue(width);
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    auto x = RandomFloats(9 * width, 3.0f, &rng);
    x[0] = -0.0f;
    x[width] = 90.0f;
    x[2 * width] = -200.0f;
    std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
    Batch batch(session.program(), {{0, 9}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    std::vector<double> expected;
    for (const float e : x) {
      const auto y = static_cast<double>(e);
      const double below = (std::expm1(std::fmin(y, -1e-6)) - y) * (0.5 + softplus(parameters[1]));
      expected.push_back((y > 0.0 ? softplus(parameters[0]) * y * y : below) + 0.5 * y);
    }
    ExpectNear(session.ValueData(step.in), expected, kTolerance);
  }
}

TEST_P(ElementwiseTest, Embed_FactorAndPositions_EqualTheFormula) {
  std::mt19937 rng(16);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kInt8}) {
    for (bool has_positions : {false, true}) {
      constexpr uint32_t kVocab = 11, kWidth = 37, kContext = 40;
      ProgramBuilder builder(kVocab, 9, kContext);
      const Matrix table = RandomMatrix(dtype, kVocab, kWidth, false, &rng);
      const Matrix positions = RandomMatrix(DType::kF32, kContext, kWidth, false, &rng);
      Step step{EmbedParams()};
      auto& params = step.Get<EmbedParams>();
      step.out = builder.AddValue(kWidth);
      params.weight = builder.AddMatrix(table, WeightLayout());
      params.factor = 12.25f;
      if (has_positions) params.positions = builder.AddMatrix(positions, WeightLayout());
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      Batch batch(session.program(), {{31, 6}, {0, 3}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
      std::vector<double> expected;
      const uint32_t at[] = {31, 32, 33, 34, 35, 36, 0, 1, 2};
      for (uint32_t r = 0; r < 9; ++r) {
        for (uint32_t c = 0; c < kWidth; ++c) {
          const auto token = static_cast<uint32_t>(batch.tokens[r]);
          double y = table.exact[token * kWidth + c] * 12.25;
          if (has_positions) y += positions.exact[at[r] * kWidth + c];
          expected.push_back(y);
        }
      }
      ExpectNear(session.ValueData(step.out), expected, kTolerance);
    }
  }
}

TEST_P(ElementwiseTest, Logits_NormKindFactorAndSoftcap_EqualTheFormula) {
  std::mt19937 rng(17);
  constexpr uint32_t kVocab = 53, kWidth = 24, kMostRows = 20;
  for (NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const auto& [factor, softcap] :
         {std::pair{1.0f, 0.0f}, std::pair{0.125f, 0.0f}, std::pair{3.0f, 30.0f}}) {
      SCOPED_TRACE(testing::Message() << factor << " " << softcap);
      ProgramBuilder builder(kVocab, kMostRows, 64);
      const Matrix head = RandomMatrix(DType::kF32, kVocab, kWidth, false, &rng);
      const auto weight = RandomFloats(kWidth, 2.0f, &rng), bias = RandomFloats(kWidth, 1.0f, &rng);
      Step step{LogitsParams()};
      auto& params = step.Get<LogitsParams>();
      step.in = builder.AddValue(kWidth);
      params.norm_kind = kind;
      params.norm = builder.AddVector(weight);
      if (kind == NormKind::kLayer) params.bias = builder.AddVector(bias);
      params.weight = builder.AddMatrix(head, WeightLayout());
      params.factor = factor;
      params.softcap = softcap;
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      for (uint32_t n_rows : {1u, 3u, kMostRows}) {
        const auto x = RandomFloats(n_rows * kWidth, 1.0f, &rng);
        std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
        Batch batch(session.program(), {{0, n_rows}}, &rng);
        batch.logit_rows = LogitRows::kAll;
        ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
        std::vector<double> expected;
        for (uint32_t r = 0; r < n_rows; ++r) {
          const std::vector<double> row(x.begin() + r * kWidth, x.begin() + (r + 1) * kWidth);
          double mean = 0.0, square = 0.0;
          for (double e : row) mean += kind == NormKind::kLayer ? e / kWidth : 0.0;
          for (double e : row) square += (e - mean) * (e - mean) / kWidth;
          for (uint32_t v = 0; v < kVocab; ++v) {
            double y = 0.0;
            for (uint32_t c = 0; c < kWidth; ++c) {
              double n = (row[c] - mean) / std::sqrt(square) * static_cast<double>(weight[c]);
              if (kind == NormKind::kLayer) n += static_cast<double>(bias[c]);
              y += n * head.exact[v * kWidth + c];
            }
            y *= static_cast<double>(factor);
            const auto cap = static_cast<double>(softcap);
            expected.push_back(softcap == 0.0f ? y : cap * std::tanh(y / cap));
          }
        }
        ExpectNear(session.Logits(), expected, 2 * kTolerance);
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

TEST(TanhTest, TanhF32_WholeRange_WithinTheDocumentedError) {
  double worst = 0.0;
  for (float x = -12.0f; x < 12.0f; x += 0.00007f) {
    if (x == 0.0f) continue;
    const double exact = std::tanh(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(TanhF32(x)) / exact - 1.0));
  }
  EXPECT_LT(worst, std::ldexp(1.0, -21));
  EXPECT_EQ(TanhF32(0.0f), 0.0f);
  EXPECT_EQ(TanhF32(-INFINITY), -1.0f);
  EXPECT_EQ(TanhF32(1e30f), 1.0f);
  EXPECT_TRUE(std::isnan(TanhF32(NAN)));
}

TEST(ErfTest, ErfF32_WholeRange_WithinTheDocumentedError) {
  double worst = 0.0;
  for (float x = -7.0f; x < 7.0f; x += 0.00007f) {
    const double exact = std::erf(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(ErfF32(x)) - exact));
  }
  EXPECT_LT(worst, std::ldexp(1.0, -22));
  EXPECT_EQ(ErfF32(0.0f), 0.0f);
  EXPECT_EQ(ErfF32(-INFINITY), -1.0f);
  EXPECT_EQ(ErfF32(50.0f), 1.0f);
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
