#include "runtime/cache/row_moves.h"

namespace arn {

uint32_t OrderRowMoves(uint32_t first, Span<const uint32_t> parents, uint32_t n_rows,
                       uint32_t* readers, uint32_t* stack, RowMove* moves) {
  const auto n = static_cast<uint32_t>(parents.size());
  const auto moves_to = [&](uint32_t row) {
    return row >= first && row - first < n && parents[row - first] != row;
  };
  for (uint32_t row = 0; row < n_rows; ++row) readers[row] = 0;
  for (uint32_t i = 0; i < n; ++i) readers[parents[i]] += parents[i] != first + i;
  uint32_t n_moves = 0, n_ready = 0;
  // A row may be overwritten once it has no readers left.
  for (uint32_t i = 0; i < n; ++i) {
    if (moves_to(first + i) && readers[first + i] == 0) stack[n_ready++] = first + i;
  }
  while (n_ready > 0) {
    const uint32_t to = stack[--n_ready];
    const uint32_t from = parents[to - first];
    moves[n_moves++] = {from, to};
    if (--readers[from] == 0 && moves_to(from)) stack[n_ready++] = from;
  }
  // The rest are cycles in which each row has one reader.
  for (uint32_t start = first; start < first + n; ++start) {
    if (!moves_to(start) || readers[start] == 0) continue;
    moves[n_moves++] = {start, n_rows};
    uint32_t to = start;
    for (; parents[to - first] != start; to = parents[to - first]) {
      readers[to] = 0;
      moves[n_moves++] = {parents[to - first], to};
    }
    readers[to] = 0;
    moves[n_moves++] = {n_rows, to};
  }
  return n_moves;
}

}  // namespace arn
