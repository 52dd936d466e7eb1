#include "runtime/sampling/random.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace arn {
namespace {

// The generator in plain 128-bit arithmetic, as section 6.3 of the paper defines XSH-RR.
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

// Branches are independent: of 8-bit numbers one in 256 is equal.
TEST(Random_Branch, GivesOtherNumbers_TheSameEachTime) {
  const Random origin(7);
  Random branches[5] = {origin, origin, origin, origin, origin};
  for (uint64_t i = 1; i < 5; ++i) branches[i].Branch(i == 4 ? 3 : i);
  int equal = 0;
  for (int i = 0; i < 10000; ++i) {
    uint32_t numbers[5];
    for (int k = 0; k < 5; ++k) numbers[k] = branches[k].NextU32() >> 24;
    ASSERT_EQ(numbers[3], numbers[4]);
    for (int k = 0; k < 4; ++k) {
      for (int j = 0; j < k; ++j) equal += numbers[k] == numbers[j];
    }
  }
  EXPECT_NEAR(6 * 10000 / 256.0, equal, 75);
}

}  // namespace
}  // namespace arn
