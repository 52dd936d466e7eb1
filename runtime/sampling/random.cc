#include "runtime/sampling/random.h"

namespace arn {
namespace {

constexpr uint64_t kMultiplier = 6364136223846793005u;
constexpr uint64_t kIncrement = 1442695040888963407u;  // odd: selects the stream

}  // namespace

void Random::Seed(uint64_t seed) {
  state_ = 0;
  NextU32();
  state_ += seed;
  NextU32();
}

// Mixes with the output function of SplitMix64 (Steele, Lea, Flood 2014, "Fast Splittable
// Pseudorandom Number Generators"): states that differ in one bit end up far apart.
void Random::Branch(uint64_t number) {
  uint64_t mixed = state_ + (number + 1) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  state_ = mixed ^ (mixed >> 31);
}

uint32_t Random::NextU32() {
  const uint64_t old = state_;
  state_ = old * kMultiplier + kIncrement;
  const uint32_t shifted = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
  const uint32_t rotation = static_cast<uint32_t>(old >> 59);
  return (shifted >> rotation) | (shifted << ((32 - rotation) & 31));
}

double Random::NextUnit() {
  const uint64_t high = NextU32() >> 5;  // 27 bits
  const uint64_t low = NextU32() >> 6;   // 26 bits
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

}  // namespace arn
