#include "runtime/sampling/random.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace arn {
namespace {

// The generator written out with 128-bit arithmetic free of tricks, as the paper's section 6.3
// defines XSH-RR.
uint32_t NextByDefinition(uint64_t* state) {
  const uint64_t old = *state;
  *state = old * 6364136223846793005u + 1442695040888963407u;
  uint32_t x = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
  for (uint32_t i = 0; i < old >> 59; ++i) x = (x >> 1) | (x << 31);
  return x;
}

TEST(Random_Next, FollowsTheDefinition) {
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{42}, UINT64_MAX}) {
    Random random(seed);
    uint64_t state = 0;
    NextByDefinition(&state);
    state += seed;
    NextByDefinition(&state);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(NextByDefinition(&state), random.NextU32());
  }
}

TEST(Random_Unit, StaysInRangeAndIsEven) {
  Random random(7);
  double sum = 0;
  int low = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = random.NextUnit();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    low += u < 0.1;
  }
  EXPECT_NEAR(0.5, sum / 100000, 0.005);
  EXPECT_NEAR(10000, low, 400);
}

}  // namespace
}  // namespace arn
