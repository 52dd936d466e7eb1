// The grid of a dispatch: its workgroups depend on the rows of the run.
#pragma once

#include <cstdint>

#include "kernels/vulkan/lower/dispatch.h"

namespace arn::vulkan {

// Determines a dispatch's workgroups, together with the rows of a run.
struct GridOf {
  GridRows rows = GridRows::kRun;
  uint8_t modes = 0;
  uint32_t row_tile = 1, row_factor = 1, first_row = 0, most_rows = 0;
  uint32_t groups_x = 0, groups_z = 0;
  Segments segments;

  GridOf() = default;
  explicit GridOf(const Dispatch& d)
      : rows(d.rows),
        modes(d.modes),
        row_tile(d.row_tile),
        row_factor(d.row_factor),
        first_row(d.first_row),
        most_rows(d.most_rows),
        groups_x(d.groups_x),
        groups_z(d.groups_z),
        segments(d.segments) {}
};

constexpr Mode ModeOf(uint32_t rows) {
  return rows == 1 ? Mode::kOne : rows <= kFewRows ? Mode::kFew : Mode::kMany;
}

// Returns the kind of a decoder's run. position: of its first row; short_positions: those of a
// short context, 0: the program has no dispatches for it.
constexpr uint32_t RunKindOf(uint32_t rows, uint32_t position, uint32_t short_positions) {
  return rows == 1 && position < short_positions ? kShortRun : static_cast<uint32_t>(ModeOf(rows));
}

// Rows of a run, of what an encoder run pools them to, and those with logits; its sequences.
struct RowCounts {
  uint32_t run = 0, pooled = 0, logits = 0, sequences = 0;
};
// Returns the rows that the grid's workgroups share, row_tile to each; 0: it has none.
uint32_t RowsOf(const GridOf& grid, const RowCounts& rows);

}  // namespace arn::vulkan
