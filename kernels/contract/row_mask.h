// Positions and visibility of the rows of a run, where they are not those of a text: trees of
// guesses, prefixes that are seen both ways.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

struct RowMask {
  // [n_rows] of RoPE, learned positions and query temperature, each below max_context. Null: those
  // in the sequence.
  const uint32_t* positions = nullptr;
  // [n_rows, end - first], row-major, where `end` is the sequence's length after the run: 0 hides a
  // position from a row, which must see itself. Null: rows see the positions up to their own.
  const uint8_t* visible = nullptr;
  uint32_t first = 0;  // positions before it are visible; at most the end
};

// Which positions the rows of a run attend to, of those that their layer's window or chunk lets
// them see. Without `cells`: those up to their own.
struct VisibleCells {
  const uint8_t* cells = nullptr;  // row r attends to first + i if cells[r * stride + i] is not 0
  size_t stride = 0;
  uint32_t first = 0;  // all rows attend to the positions before it
  uint32_t end = 0;    // one past the last position of the run: rows may attend to later rows

  bool Has(uint32_t row, uint32_t position) const {
    return position < first || cells[row * stride + position - first] != 0;
  }
};

}  // namespace arn
