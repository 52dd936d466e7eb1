// ImagePlan: every byte of an image encoder, decided before any is allocated.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/memory/whole_input_plan.h"
#include "runtime/model/model.h"
#include "runtime/vision/tiling.h"

namespace arn {

inline constexpr uint32_t kDefaultImageSide = 8192;
inline constexpr uint32_t kMostImageSide = 32768;

struct ImageOptions {
  uint32_t max_side = 0;   // longest side of an image, in pixels; 0: kDefaultImageSide
  uint32_t n_threads = 0;  // 0: as many as performance CPUs
};

struct ImagePlan : WholeInputPlan {
  ImageOptions options;  // without zeros
  TilingBounds bounds;
  Slice windows;         // SequenceRows [tokens], of towers with windows
  Slice sequence;        // SequenceRows
  Slice rows;            // f32 [max_patches, patch_row_floats]
  Slice taps;            // f64, of WritePositions
  Slice axis_positions;  // u32 [max_patches, kRopeAxes], of towers with RoPE
  Slice resizer;
  Slice whole, grid;  // resized images: the first or the whole one; the one that is cut
};

// object_bytes: sizeof(ImageEncoder). kUnsupported: the model takes no images, or the backend keeps
// activations on a device; kBadArgument: an option out of its range.
Status PlanImageEncoder(const Model& model, const Backend* backend, const ImageOptions& options,
                        uint64_t object_bytes, ImagePlan* out, Diag* diag);

}  // namespace arn
