// Tiling: how an image becomes tiles of pixels. The rules are those of transformers' image
// processors; docs/skills.md has the families of each.
#pragma once

#include <cstdint>

#include "runtime/model/vision_spec.h"
#include "runtime/vision/resample.h"

namespace arn {

// Tiles of a grid come first, row by row, then the whole image.
struct Tiling {
  ImageSize first;              // the image is resized to this before all else; else 0
  uint32_t rows = 0, cols = 0;  // of the grid; 0: there is none
  ImageSize grid;               // of the image that is cut into tiles
  ImageSize whole;              // 0: only tiles

  uint32_t n_grid_tiles() const { return rows * cols; }
  uint32_t n_tiles() const { return n_grid_tiles() + (whole.exists() ? 1 : 0); }
  // Returns the size of a tile.
  ImageSize TileSize(uint32_t tile) const {
    return tile == n_grid_tiles() ? whole : ImageSize{grid.width / cols, grid.height / rows};
  }
};

// REQUIRES: neither side is 0. A whole image without size: none fits the rule.
Tiling TilingOf(const VisionSpec& vision, ImageSize image);

// Returns the tokens of a tile.
uint32_t TileTokens(const VisionSpec& vision, ImageSize tile);
uint32_t ImageTokens(const VisionSpec& vision, const Tiling& tiling);

// Bounds of every tiling: the longest side of a resized image, the bytes of the first one or the
// whole one, and of the one that is cut.
struct TilingBounds {
  uint32_t longest_side = 0;
  uint64_t whole_bytes = 0, grid_bytes = 0;
  uint32_t most_tokens = 0;  // of an image
};
TilingBounds BoundsOf(const VisionSpec& vision);
// Returns the most patches of a tile of images whose sides are at most max_side, a whole number of
// tokens: less than the tower's where the rule does not enlarge images.
uint32_t MostPatches(const VisionSpec& vision, uint32_t max_side);

}  // namespace arn
