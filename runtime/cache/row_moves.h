// Permutes rows of a table in place, with copies and one temporary row instead of a second table.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

struct RowMove {
  uint32_t from = 0;
  uint32_t to = 0;
};

// Maximum moves for n rows: one copy per row and one to the temporary row per cycle.
constexpr uint64_t MaxRowMoves(uint64_t n) { return n + n / 2; }

// Writes the copies, in order, that make row first + i what row parents[i] was; returns their
// number. Rows are 0..n_rows - 1, n_rows is the temporary row; targets and parents are within the
// rows. A row that stays is not copied. readers and stack: u32 [n_rows], scratch. moves:
// MaxRowMoves(n_rows).
uint32_t OrderRowMoves(uint32_t first, Span<const uint32_t> parents, uint32_t n_rows,
                       uint32_t* readers, uint32_t* stack, RowMove* moves);

}  // namespace arn
