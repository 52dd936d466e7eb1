#include "runtime/audio/dft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace arn::test {
namespace {

TEST(DftTest, EachLane_EqualsTheSum) {
  constexpr double kTwoPi = 6.283185307179586476925;
  std::vector<float> x(Dft::kSize * Dft::kLanes);
  uint32_t state = 1;
  const auto dft = std::make_unique<Dft>();
  for (uint32_t n = 0; n < Dft::kSize; ++n) {
    for (uint32_t lane = 0; lane < Dft::kLanes; ++lane) {
      state = state * 1664525 + 1013904223;
      x[n * Dft::kLanes + lane] = static_cast<float>(state >> 8) / (1 << 23) - 1.0f;
      *dft->Sample(n, lane) = x[n * Dft::kLanes + lane];
    }
  }
  std::vector<float> power(Dft::kBins * Dft::kLanes);
  dft->Run(power.data());
  for (uint32_t lane = 0; lane < Dft::kLanes; ++lane) {
    for (uint32_t k = 0; k < Dft::kBins; ++k) {
      double re = 0, im = 0;
      for (uint32_t n = 0; n < Dft::kSize; ++n) {
        const double angle = -kTwoPi * (k * n % Dft::kSize) / Dft::kSize;
        re += static_cast<double>(x[n * Dft::kLanes + lane]) * std::cos(angle);
        im += static_cast<double>(x[n * Dft::kLanes + lane]) * std::sin(angle);
      }
      const double expected = re * re + im * im;
      EXPECT_NEAR(expected, static_cast<double>(power[k * Dft::kLanes + lane]),
                  1e-4 + 1e-5 * expected)
          << k;
    }
  }
}

}  // namespace
}  // namespace arn::test
