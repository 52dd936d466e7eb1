// VisionSpec: checked view of a bundle's vision tower.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "kernels/contract/weight.h"
#include "platform/base/span.h"
#include "runtime/bundle/image_rules.h"
#include "runtime/bundle/layer_fields.h"

namespace arn {

struct LayerKindSpec;
struct LayerSpec;
struct DenseSpec;

inline constexpr uint32_t kMaxTileSize = 4096;
inline constexpr uint32_t kMaxImageTiles = 144;

// Vision tower: patches of a tile to rows of the decoder's width.
// Makes rows of the decoder's width of merged patches.
struct ProjectorSpec {
  WeightId norm = kNoWeight;
  NormKind norm_kind = NormKind::kLayer;
  WeightId norm_bias = kNoWeight;
  float norm_epsilon = 0.0f;
  Span<const DenseSpec> stages;
};

// Layer `layer` of the tower also makes rows: those of deepstack[i] are added behind layer i of the
// decoder.
struct DeepstackSpec {
  uint32_t layer = 0;
  ProjectorSpec projector;
};

struct VisionSpec {
  uint32_t hidden = 0;      // 0: no tower
  uint32_t patch_size = 0;  // pixels of a side
  WeightId patch_embedding = kNoWeight;
  uint32_t position_side = 0;  // of the grid that `positions` are of; 0: there are none
  WeightId positions = kNoWeight;
  GridPositions grid_positions = GridPositions::kExact;
  Span<const LayerKindSpec> kinds;
  Span<const LayerSpec> layers;
  WeightId final_norm = kNoWeight;
  NormKind final_norm_kind = NormKind::kLayer;
  WeightId final_norm_bias = kNoWeight;
  float final_norm_epsilon = 0.0f;
  uint32_t merge_side = 1;
  uint32_t window_side = 0;  // in tokens; 0: a tile has no windows
  PoolKind merge = PoolKind::kConcat;
  float merge_factor = 1.0f;
  WeightId merge_shift = kNoWeight;
  WeightId merge_scale = kNoWeight;
  ProjectorSpec projector;
  Span<const DeepstackSpec> deepstack;  // by layer
  uint32_t max_patches = 0;             // of a tile
  ImageRules image;
  int32_t token_id = -1;
  bool sees_both_ways = false;
  bool has_mrope = false;  // the decoder's RoPE turns by the place in an image

  bool exists() const { return hidden != 0; }
  uint32_t patch_floats() const { return kPixelChannels * patch_size * patch_size; }
  // Floats of a patch that the program takes: its pixels, then its position.
  uint32_t patch_row_floats() const { return patch_floats() + (position_side != 0 ? hidden : 0); }
  // Patches that become a row.
  uint32_t merged_patches() const { return merge_side * merge_side; }
  // Pixels of a side of what becomes a row.
  uint32_t token_size() const { return patch_size * merge_side; }
};

}  // namespace arn
