#include "tools/arenite/resample.h"

#include <cmath>
#include <fstream>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace arn::tool {
namespace {

// The signal of make_resample_goldens.py.
std::vector<float> Signal(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    const auto t = static_cast<double>(i);
    out[i] = static_cast<float>(0.4 * std::sin(0.11 * t) + 0.2 * std::sin(1.9 * t + 1));
  }
  out[n / 2] += 0.5f;
  return out;
}

TEST(Resample, Goldens_AreTorchaudios) {
  std::ifstream file(ARN_RESAMPLE_CASES);
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_EQ(7u, cases.size());
  for (const nlohmann::json& c : cases) {
    SCOPED_TRACE(c.at("from").dump() + " to " + c.at("to").dump());
    const std::vector<float> found = Resample(Signal(c.at("samples")), c.at("from"), c.at("to"));
    const auto expected = c.at("resampled").get<std::vector<float>>();
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(expected[i], found[i], 1e-6) << i;
  }
}

TEST(Resample, SameRate_SameSamples) {
  const std::vector<float> samples = Signal(50);
  EXPECT_EQ(samples, Resample(samples, 44100, 44100));
  EXPECT_TRUE(Resample({}, 44100, 16000).empty());
}

// A tone below half of the lower rate stays as it is; one above it goes.
TEST(Resample, Tones_StayOrGo) {
  constexpr double kPi = 3.14159265358979323846;
  const auto tone = [](double hertz, uint32_t rate) {
    std::vector<float> out(rate / 5);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(std::sin(2 * kPi * hertz * static_cast<double>(i) / rate));
    }
    return out;
  };
  for (const uint32_t rate : {kLowestRate, 44100u, 48000u, kHighestRate}) {
    SCOPED_TRACE(rate);
    const std::vector<float> found = Resample(tone(1000, rate), rate, 16000);
    const std::vector<float> expected = tone(1000, 16000);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 100; i + 100 < found.size(); ++i) ASSERT_NEAR(expected[i], found[i], 0.01) << i;
    if (rate < 44100) continue;
    const std::vector<float> high = Resample(tone(12000, rate), rate, 16000);
    for (size_t i = 100; i + 100 < high.size(); ++i) ASSERT_LT(std::fabs(high[i]), 0.01f) << i;
  }
}

}  // namespace
}  // namespace arn::tool
