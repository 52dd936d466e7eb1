// PCG32 (O'Neill 2014, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms
// for Random Number Generation", XSH-RR 64/32): small state, same numbers on every machine.
#pragma once

#include <cstdint>

namespace arn {

class Random {
 public:
  explicit Random(uint64_t seed = 0) { Seed(seed); }
  void Seed(uint64_t seed);
  uint32_t NextU32();
  // Uniform in [0, 1), 53 bits.
  double NextUnit();

  // Switches to another stream, determined by the current state and `number`.
  void Branch(uint64_t number);

  // Complete state, for saving.
  uint64_t state() const { return state_; }
  void set_state(uint64_t state) { state_ = state; }

 private:
  uint64_t state_ = 0;
};

}  // namespace arn
