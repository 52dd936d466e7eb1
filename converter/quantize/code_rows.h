// Quantises rows of float weights to types of codes (kernels/contract/code_type.h) whose blocks
// have scales of int8: all but the ternary one, which holds a row exactly or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/contract/code_type.h"

namespace arn::convert {

// A row as RowMatrix holds it.
struct CodeRow {
  uint8_t* codes;   // [type.Padded(cols)]
  int16_t* scales;  // [type.Blocks(cols)]
  float* row_scale;
};

// Rounds to the levels of a type, and scales to those of a row.
class CodeGrid {
 public:
  CodeGrid(const CodeType& type, float row_scale) : type_(type), row_scale_(row_scale) {}

  // Returns the code of the level nearest to `value` (in units of the scale of its block).
  uint32_t Code(float value) const {
    uint32_t code = 0;
    for (uint32_t i = 1; i < type_.n_levels(); ++i) code += value > Border(i) ? 1 : 0;
    return code;
  }
  float Level(float value) const { return static_cast<float>(type_.levels[Code(value)]); }
  uint32_t CodeOfLevel(float level) const { return Code(level); }

  // Returns the whole number that is stored for a block's scale: not 0.
  int16_t Stored(float scale) const;
  // Returns the nearest scale that can be stored.
  float Nearest(float scale) const { return static_cast<float>(Stored(scale)) * row_scale_; }
  const CodeType& type() const { return type_; }
  float row_scale() const { return row_scale_; }

 private:
  float Border(uint32_t code) const {
    return 0.5f * static_cast<float>(type_.levels[code - 1] + type_.levels[code]);
  }

  const CodeType& type_;
  float row_scale_;
};

// The scale of each block minimises the squared error, weighted by each column's importance (as
// QuantizeRowInt4 has it), over multiples of the one that gives the extreme value the last level,
// and then, twice, the least-squares scale of its own levels. The row's scale makes the largest of
// them 127. `weights`: finite, [cols]; importance: [cols] or null.
void QuantizeRowCodes(const CodeType& type, const float* weights, size_t cols,
                      const float* importance, const CodeRow& out);

// Returns the best scale of one block of at most type.block weights, before it is rounded; 0 for
// zeros.
float SearchBlockScale(const CodeGrid& grid, const float* weights, const float* importance,
                       size_t n);

}  // namespace arn::convert
