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
  // For backends that compute on a device. Strings are read by ImageEncoder::Create alone.
  GpuOptions gpu;
  bool trusts_device = false;  // skips the self-test
};

// Backends that towers may run on.
struct TowerBackends {
  const Backend* backend = nullptr;    // null: not in this build
  const Backend* fallback = nullptr;   // takes over if `backend` is missing, refuses the tower or
                                       // fails. Null: nothing does
  const Backend* self_test = nullptr;  // computes what a device's self-test expects
  const char* if_missing = "";         // why `backend` is null
};

struct ImagePlan : WholeInputPlan {
  ImageOptions options;  // without zeros
  TilingBounds bounds;
  const Backend* self_test = nullptr;
  Diag refused;          // why the fallback is the only backend; empty: it is not
  Slice windows;         // SequenceRows [tokens], of towers with windows
  Slice sequence;        // SequenceRows
  Slice rows;            // f32 [patches, patch_row_floats]
  Slice taps;            // f64, of WritePositions
  Slice axis_positions;  // u32 [patches, kRopeAxes], of towers with RoPE
  Slice results;         // f32 [vectors, tokens, hidden], of towers on a device
  Slice resizer;
  Slice whole, grid;  // resized images: the first or the whole one; the one that is cut
};

// object_bytes: sizeof(ImageEncoder). kUnsupported: the model takes no images, or the backend does
// not run its tower and has no fallback; kBadArgument: an option out of its range.
Status PlanImageEncoder(const Model& model, const TowerBackends& backends,
                        const ImageOptions& options, uint64_t object_bytes, ImagePlan* out,
                        Diag* diag);

}  // namespace arn
