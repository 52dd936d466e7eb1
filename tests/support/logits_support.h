// Compares the next-token logits of two sessions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "arenite/arenite.h"

namespace arn::test {

// Returns the largest logit difference of the selected sequences; NaN if any logit is NaN.
inline double LogitDifference(const arn_session* a, const arn_session* b, uint32_t vocab) {
  const float *x = nullptr, *y = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_logits(a, &x));
  EXPECT_EQ(ARN_OK, arn_session_logits(b, &y));
  if (x == nullptr || y == nullptr) return HUGE_VAL;
  double largest = 0;
  for (uint32_t i = 0; i < vocab; ++i) {
    const double d = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    if (!(d <= largest)) largest = d;
  }
  return largest;
}

}  // namespace arn::test
