// kMixStreams, kMatchRms and kThreshold, and kMultiply's factor, against formulas in double.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kRows = 7;
constexpr uint32_t kWidths[] = {1, 15, 16, 33, 172, 1021};

// Vulkan refuses these steps in its plan: tests/golden/vulkan_golden_test.cc.
std::vector<BackendCase> HostBackends() {
  std::vector<BackendCase> backends = AllBackends();
  backends.erase(
      std::remove_if(backends.begin(), backends.end(),
                     [](const BackendCase& b) { return b.name.rfind("Vulkan", 0) == 0; }),
      backends.end());
  return backends;
}

class StreamsTest : public BackendTest {
 protected:
  std::vector<float> Fill(Session* session, ValueId id, uint32_t width, float scale) {
    std::vector<float> values = RandomFloats(size_t{kRows} * width, scale, &rng_);
    Put(session, id, values);
    return values;
  }
  static void Put(Session* session, ValueId id, const std::vector<float>& values) {
    std::memcpy(session->ValueData(id), values.data(), values.size() * sizeof(float));
  }
  void Run(Session* session) {
    Batch batch(session->program(), {{0, kRows}}, &rng_);
    ASSERT_EQ(session->Run(batch.Args()), Status::kOk) << session->message();
  }

  std::mt19937 rng_{31};
};

struct MixCase {
  uint32_t n_streams, active;
};

TEST_P(StreamsTest, MixStreams_EachRule_EqualsTheFormula) {
  for (const MixCase& shape : {MixCase{1, 0}, {2, 1}, {3, 1}, {4, 0}, {8, 7}}) {
    for (const StreamRule rule : {StreamRule::kPredict, StreamRule::kCorrect, StreamRule::kMean}) {
      for (const uint32_t width : kWidths) {
        for (const bool is_scaled : {false, true}) {
          if (is_scaled && rule != StreamRule::kCorrect) continue;
          SCOPED_TRACE(testing::Message() << shape.n_streams << " streams of " << width << ", rule "
                                          << static_cast<int>(rule));
          const uint32_t n = shape.n_streams, active = shape.active;
          ProgramBuilder builder(2, kRows, 64);
          Step step{MixStreamsParams()};
          auto& p = step.Get<MixStreamsParams>();
          p.rule = rule;
          p.n_streams = static_cast<uint16_t>(n);
          p.active = static_cast<uint16_t>(active);
          step.in = builder.AddValue(width);
          for (uint32_t i = 0; i < n; ++i) {
            const ValueId id = builder.AddValue(width);
            if (i == 0) p.streams = id;
          }
          const uint32_t n_coefs = rule == StreamRule::kPredict ? n * n : n;
          if (rule != StreamRule::kMean) p.coefs = builder.AddValue(n_coefs);
          const std::vector<float> scale = RandomFloats(width, 2.0f, &rng_);
          if (is_scaled) p.scale = builder.AddVector(scale);
          builder.AddStep(step);
          Session session(GetParam().backend, &builder, GetParam().n_threads);
          const std::vector<float> x = Fill(&session, step.in, width, 2.0f);
          std::vector<std::vector<float>> streams;
          for (uint32_t i = 0; i < n; ++i) {
            streams.push_back(
                Fill(&session, static_cast<ValueId>(p.streams + i), width, 1.0f + 0.5f * i));
          }
          std::vector<float> coefs;
          if (rule != StreamRule::kMean) coefs = Fill(&session, p.coefs, n_coefs, 1.5f);
          Run(&session);

          std::vector<std::vector<double>> after(n);
          std::vector<double> out;
          for (uint32_t at = 0; at < kRows * width; ++at) {
            const float* c = coefs.data() + at / width * n_coefs;
            double mean = 0.0;
            for (uint32_t i = 0; i < n; ++i) {
              auto y = static_cast<double>(streams[i][at]);
              mean += y / n;
              if (rule == StreamRule::kPredict) {
                for (uint32_t j = 0; j < n; ++j) {
                  y += static_cast<double>(c[i * n + j]) * static_cast<double>(streams[j][at]);
                }
              } else if (rule == StreamRule::kCorrect) {
                y += (1.0 + static_cast<double>(c[i])) *
                     (static_cast<double>(x[at]) - static_cast<double>(streams[active][at]));
              }
              after[i].push_back(y);
            }
            const double factor = is_scaled ? static_cast<double>(scale[at % width]) : 1.0;
            out.push_back(rule == StreamRule::kMean ? mean : after[active][at] * factor);
          }
          ExpectNear(session.ValueData(step.in), out, kTolerance);
          for (uint32_t i = 0; i < n; ++i) {
            ExpectNear(session.ValueData(static_cast<ValueId>(p.streams + i)), after[i],
                       kTolerance);
          }
        }
      }
    }
  }
}

TEST_P(StreamsTest, MatchRms_LargeSmallAndTinyRows_EqualsTheFormula) {
  constexpr float kEpsilon = 1e-5f;
  for (const uint32_t width : kWidths) {
    for (const float scale : {10.0f, 1.0f, 1e-4f, 0.0f}) {  // the last two are below the epsilon
      SCOPED_TRACE(testing::Message() << width << " times " << scale);
      ProgramBuilder builder(2, kRows, 64);
      Step step{MatchRmsParams()};
      auto& p = step.Get<MatchRmsParams>();
      p.epsilon = kEpsilon;
      step.in = builder.AddValue(width);
      step.out = builder.AddValue(width);
      p.like = builder.AddValue(width);
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      const std::vector<float> x = Fill(&session, step.in, width, scale);
      const std::vector<float> like = Fill(&session, p.like, width, 3.0f);
      Run(&session);
      const auto mean_square = [&](const std::vector<float>& values, uint32_t row) {
        double sum = 0.0;
        for (uint32_t c = 0; c < width; ++c) {
          sum += std::pow(static_cast<double>(values[row * width + c]), 2);
        }
        return sum / width;
      };
      std::vector<double> expected;
      for (uint32_t at = 0; at < kRows * width; ++at) {
        const uint32_t row = at / width;
        const double least = static_cast<double>(kEpsilon);
        expected.push_back(static_cast<double>(x[at]) * std::sqrt(mean_square(like, row)) /
                           std::sqrt(std::max(mean_square(x, row), least)));
      }
      ExpectNear(session.ValueData(step.out), expected, kTolerance);
    }
  }
}

TEST_P(StreamsTest, Threshold_PartOfARow_EqualsTheFormula) {
  for (const uint32_t width : kWidths) {
    for (const float deviations : {-0.5f, 0.0f, 1.6449f}) {
      SCOPED_TRACE(testing::Message() << width << ", " << deviations << " deviations");
      ProgramBuilder builder(2, kRows, 64);
      Step step{ThresholdParams()};
      step.Get<ThresholdParams>() = {width, deviations};
      step.in = builder.AddValue(2 * width);
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      std::vector<float> x = RandomFloats(size_t{kRows} * 2 * width, 2.0f, &rng_);
      for (float& e : x) e += 5.0f;  // a mean far from zero
      Put(&session, step.in, x);
      Run(&session);
      std::vector<double> expected(x.begin(), x.end());
      uint32_t n_kept = 0;
      for (uint32_t row = 0; row < kRows; ++row) {
        double* at = expected.data() + size_t{row} * 2 * width;
        double mean = 0.0, variance = 0.0;
        for (uint32_t c = 0; c < width; ++c) mean += at[c] / width;
        for (uint32_t c = 0; c < width; ++c) variance += (at[c] - mean) * (at[c] - mean) / width;
        const double cutoff = mean + static_cast<double>(deviations) * std::sqrt(variance);
        for (uint32_t c = 0; c < width; ++c) {
          at[c] = std::max(0.0, at[c] - cutoff);
          n_kept += at[c] > 0.0 ? 1 : 0;
        }
      }
      if (width > 100) {
        EXPECT_TRUE(n_kept > 0 && n_kept < kRows * width) << n_kept;
      }
      ExpectNear(session.ValueData(step.in), expected, kTolerance);
    }
  }
}

TEST_P(StreamsTest, Multiply_ByAFactor_EqualsTheFormula) {
  for (const uint32_t width : kWidths) {
    SCOPED_TRACE(width);
    ProgramBuilder builder(2, kRows, 64);
    Step step{MultiplyParams()};
    auto& p = step.Get<MultiplyParams>();
    p.factor = 0.70710678f;
    p.scale = builder.AddVector({-3.0f});
    step.in = builder.AddValue(width);
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const std::vector<float> x = Fill(&session, step.in, width, 2.0f);
    Run(&session);
    std::vector<double> expected;
    for (const float e : x) {
      expected.push_back(static_cast<double>(e) * static_cast<double>(p.factor) * -3.0);
    }
    ExpectNear(session.ValueData(step.in), expected, kTolerance);
  }
}

// A step that a backend must not run: the program is refused.
struct Damage {
  const char* name;
  void (*apply)(Step*);
};

TEST_P(StreamsTest, MixStreams_DamagedSteps_AreRefused) {
  static constexpr auto kParams = [](Step* step) -> MixStreamsParams& {
    return step->Get<MixStreamsParams>();
  };
  const Damage damages[] = {
      {"no streams", [](Step* s) { kParams(s).n_streams = 0; }},
      {"too many streams", [](Step* s) { kParams(s).n_streams = kMaxStreams + 1; }},
      {"streams behind the values", [](Step* s) { kParams(s).streams = kNoValue - 1; }},
      {"x among the streams", [](Step* s) { kParams(s).streams = s->in; }},
      {"no active stream", [](Step* s) { kParams(s).active = 2; }},
      {"coefficients of another rule", [](Step* s) { kParams(s).rule = StreamRule::kCorrect; }},
      {"coefficients of none", [](Step* s) { kParams(s).rule = StreamRule::kMean; }},
      {"no coefficients", [](Step* s) { kParams(s).coefs = kNoValue; }},
      {"an unknown rule", [](Step* s) { kParams(s).rule = static_cast<StreamRule>(3); }},
      {"a scale of another rule", [](Step* s) { kParams(s).scale = 0; }},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    ProgramBuilder builder(2, kRows, 64);
    builder.AddVector(std::vector<float>(5, 1.0f));
    Step step{MixStreamsParams()};
    step.in = builder.AddValue(5);
    auto& p = step.Get<MixStreamsParams>();
    p.streams = builder.AddValue(5);
    builder.AddValue(5);
    p.n_streams = 2;
    p.coefs = builder.AddValue(4);
    damage.apply(&step);
    builder.AddStep(step);
    std::string message;
    EXPECT_FALSE(CanLoad(GetParam().backend, &builder, &message));
    EXPECT_NE("", message);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, StreamsTest, testing::ValuesIn(HostBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance
