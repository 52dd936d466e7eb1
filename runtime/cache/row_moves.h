// The order in which rows of a table are copied so that each becomes what another one was, with
// one spare row instead of a second table.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

struct RowMove {
  uint32_t from = 0;
  uint32_t to = 0;
};

// At most so many moves for n rows: a copy of each, and one to the spare row for each cycle.
constexpr uint64_t MaxRowMoves(uint64_t n) { return n + n / 2; }

// Writes the copies that make row first + i what row parents[i] was, to be carried out in this
// order; returns how many. Rows are 0..n_rows - 1, n_rows names the spare one; no target and no
// parent is beyond them. A row that keeps its place is not copied. readers and stack: u32 [n_rows]
// of scratch. moves: MaxRowMoves(n_rows).
uint32_t OrderRowMoves(uint32_t first, Span<const uint32_t> parents, uint32_t n_rows,
                       uint32_t* readers, uint32_t* stack, RowMove* moves);

}  // namespace arn
