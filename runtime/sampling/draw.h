// One draw from weights: walking along them until they add up to more than what was drawn.
#pragma once

#include <cstdint>

namespace arn {

// weights: f32 [n], n > 0, none below 0, some above; unit: in [0, 1). Takes the weights in order
// from unit * (their sum, added up in order), in double, and returns the index that makes it
// negative; or, should rounding let none, the last that is not 0.
uint32_t DrawInOrder(const float* weights, uint32_t n, double unit);

// The sums of weights block by block, for draws from many.
struct BlockSums {
  static constexpr uint32_t kMaxBlocks = 256;

  // Weights of a block, whose last one may have fewer; n > 0.
  static uint32_t BlockOf(uint32_t n);

  uint32_t block = 0;
  double sums[kMaxBlocks];  // each added up in any order
};

// What DrawInOrder returns, looking at the weights of one block only. False, with *index as it was,
// when the draw is so close to a border between two weights that rounding may decide.
bool DrawByBlocks(const float* weights, uint32_t n, const BlockSums& blocks, double unit,
                  uint32_t* index);

}  // namespace arn
