// Rows that the vision program takes: of each patch its pixels, then its position embedding.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "platform/base/arith.h"
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

inline PatchGrid TokenGridOf(const VisionSpec& vision, PatchGrid patches) {
  return {patches.rows / vision.merge_side, patches.cols / vision.merge_side};
}

// Calls visit(window) for each window of a grid of tokens, row by row: the whole grid if the tower
// has none.
struct TokenWindow {
  uint32_t row, col, rows, cols;
};
template <typename Visit>
void ForEachWindow(const VisionSpec& vision, PatchGrid tokens, Visit visit) {
  const uint32_t side = vision.window_side;
  if (side == 0) return visit(TokenWindow{0, 0, tokens.rows, tokens.cols});
  for (uint32_t row = 0; row < tokens.rows; row += side) {
    for (uint32_t col = 0; col < tokens.cols; col += side) {
      visit(TokenWindow{row, col, Min(side, tokens.rows - row), Min(side, tokens.cols - col)});
    }
  }
}

// Calls visit(index, row, col) for each token in the order of the program's rows: by windows, in
// them row by row.
template <typename Visit>
void ForEachToken(const VisionSpec& vision, PatchGrid tokens, Visit visit) {
  uint32_t index = 0;
  ForEachWindow(vision, tokens, [&](const TokenWindow& w) {
    for (uint32_t i = 0; i < w.rows * w.cols; ++i) {
      visit(index++, w.row + i / w.cols, w.col + i % w.cols);
    }
  });
}

// Likewise for each patch: those that are merged next to each other.
template <typename Visit>
void ForEachPatch(const VisionSpec& vision, PatchGrid grid, Visit visit) {
  const uint32_t side = vision.merge_side, n = side * side;
  ForEachToken(vision, TokenGridOf(vision, grid), [&](uint32_t token, uint32_t row, uint32_t col) {
    for (uint32_t i = 0; i < n; ++i) {
      visit(token * n + i, row * side + i / side, col * side + i % side);
    }
  });
}

// Writes the pixels of a tile's patches, normalised, to rows of patch_row_floats: red of all pixels
// of a patch, row by row, then green, then blue. REQUIRES: the tile's sides are multiples of a
// token's.
void WritePixels(const VisionSpec& vision, const ImageView& tile, float* rows);

// Writes the position embeddings of a grid to the same rows. positions: kAxes: [2 * position_side,
// hidden], those of columns and those of rows. Else [position_side^2, hidden], resampled unless the
// grid is the trained one: as torch's interpolate does (bilinear, antialias), or between the four
// nearest, the corners staying where they are (kCorners; get_vision_bilinear_indices_and_weights in
// transformers' vision_utils.py). taps: room for 2 * (position_side + 3) weights.
void WritePositions(const VisionSpec& vision, const float* positions, PatchGrid grid,
                    Span<double> taps, float* rows);

// Writes the positions that the tower's RoPE turns by: row 1 and column 2 of kRopeAxes of each
// patch.
void WriteAxisPositions(const VisionSpec& vision, PatchGrid grid, uint32_t* out);

// Writes the rows of each window (RunArgs::parts). Returns their number.
uint32_t WriteWindows(const VisionSpec& vision, PatchGrid grid, SequenceRows* out);

}  // namespace arn
