// ImagePlan: every byte of an image encoder, decided before any is allocated.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/status.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model.h"
#include "runtime/vision/tiling.h"

namespace arn {

inline constexpr uint32_t kDefaultImageSide = 8192;
inline constexpr uint32_t kMostImageSide = 32768;

struct ImageOptions {
  uint32_t max_side = 0;   // longest side of an image, in pixels; 0: kDefaultImageSide
  uint32_t n_threads = 0;  // 0: as many as performance CPUs
};

struct ImagePlan {
  ImageOptions options;  // without zeros
  const Backend* backend = nullptr;
  Program program;
  BackendPlan backend_plan;
  TilingBounds bounds;
  Slice object;    // ImageEncoder
  Slice sequence;  // SequenceRows
  Slice rows;      // f32 [max_patches, PatchRowFloats]
  Slice taps;      // f64, of WritePositions
  Slice resizer;
  Slice whole, grid;  // resized images: the first or the whole one; the one that is cut
  uint64_t region_bytes[kRegionCount] = {};

  uint64_t TotalBytes() const;
  // Points the program to this plan's copy. Call after copying the plan.
  void Bind() { program.values = {values, program.values.size()}; }

  Value values[kMaxValues];
};

// object_bytes: sizeof(ImageEncoder). kUnsupported: the model takes no images, or the backend keeps
// activations on a device; kBadArgument: an option out of its range.
Status PlanImageEncoder(const Model& model, const Backend* backend, const ImageOptions& options,
                        uint64_t object_bytes, ImagePlan* out, Diag* diag);

// Splits a block of TotalBytes().
Memory PartitionBlock(const ImagePlan& plan, std::byte* block);

}  // namespace arn
