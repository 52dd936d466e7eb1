#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace arn::conformance {

// Expects each found[n] within `tolerance` times the largest magnitude of `expected`.
template <typename Expected>
void ExpectNear(const float* found, const std::vector<Expected>& expected, double tolerance) {
  double largest = 1e-3;
  for (const Expected e : expected) largest = std::max(largest, std::fabs(static_cast<double>(e)));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error =
        std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    ASSERT_TRUE(error <= tolerance * largest)  // fails for NaN too
        << "element " << i << " of " << expected.size() << ": " << found[i] << ", expected "
        << static_cast<double>(expected[i]) << ", error/largest " << error / largest;
  }
}

}  // namespace arn::conformance
