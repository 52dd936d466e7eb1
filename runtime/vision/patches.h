// Rows that the vision program takes: of each patch its pixels, then its position embedding.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/model/vision_spec.h"
#include "runtime/vision/resample.h"

namespace arn {

// Rows and columns of a grid of patches.
struct PatchGrid {
  uint32_t rows = 0, cols = 0;
};
inline PatchGrid GridOf(const VisionSpec& vision, ImageSize tile) {
  return {tile.height / vision.patch_size, tile.width / vision.patch_size};
}

// Calls visit(index, row, col) for each patch in the order of the program's rows: those that are
// merged next to each other, row by row.
template <typename Visit>
void ForEachPatch(PatchGrid grid, uint32_t merge_side, Visit visit) {
  uint32_t index = 0;
  for (uint32_t row = 0; row < grid.rows; row += merge_side) {
    for (uint32_t col = 0; col < grid.cols; col += merge_side) {
      for (uint32_t i = 0; i < merge_side * merge_side; ++i) {
        visit(index++, row + i / merge_side, col + i % merge_side);
      }
    }
  }
}

// Writes the pixels of a tile's patches, normalised, to rows of patch_row_floats: red of all pixels
// of a patch, row by row, then green, then blue. REQUIRES: the tile's sides are multiples of a
// token's.
void WritePixels(const VisionSpec& vision, const ImageView& tile, float* rows);

// Writes the position embeddings of a grid to the same rows. positions: [position_side^2, hidden],
// resampled unless the grid is the trained one: as torch's interpolate does (bilinear, antialias),
// or between the four nearest, the corners staying where they are (kCorners;
// get_vision_bilinear_indices_and_weights in transformers' vision_utils.py). taps: room for
// 2 * (position_side + 3) weights.
void WritePositions(const VisionSpec& vision, const float* positions, PatchGrid grid,
                    Span<double> taps, float* rows);

// Writes the positions that the tower's RoPE turns by: row 1 and column 2 of kRopeAxes of each
// patch.
void WriteAxisPositions(PatchGrid grid, uint32_t merge_side, uint32_t* out);

}  // namespace arn
