// Samples an index from weights by inverse transform: the first index whose cumulative weight
// exceeds the random number.
#pragma once

#include <cstdint>

namespace arn {

// weights: f32 [n], n > 0, non-negative, not all zero; unit: in [0, 1). Subtracts the weights in
// order from unit * (their sum, added in order), in double, and returns the index that makes it
// negative; if rounding prevents that, the last non-zero weight.
uint32_t DrawInOrder(const float* weights, uint32_t n, double unit);

// Block sums of the weights, to sample from many.
struct BlockSums {
  static constexpr uint32_t kMaxBlocks = 256;

  // Returns the weights per block (the last may have fewer); n > 0.
  static uint32_t BlockOf(uint32_t n);

  uint32_t block = 0;
  double sums[kMaxBlocks];  // each added in any order
};

// Returns the same index as DrawInOrder but reads one block of weights only. Returns false and
// leaves *index unchanged if the number is so close to a boundary that rounding may decide.
bool DrawByBlocks(const float* weights, uint32_t n, const BlockSums& blocks, double unit,
                  uint32_t* index);

}  // namespace arn
