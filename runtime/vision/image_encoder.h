// ImageEncoder: makes rows of the decoder's width of images, with the model's vision tower. Lives
// inside its own memory block and allocates nothing after Create(). An app may destroy it once its
// images are encoded: sessions keep copies of the rows.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/model/model.h"
#include "runtime/vision/image_plan.h"
#include "runtime/vision/resample.h"
#include "runtime/vision/tiling.h"
#include "runtime/vision/tower_runner.h"

namespace arn {

// Tells the tiling of an image. kBadArgument: a side is 0, or the image's shape gives a tile that
// the tower does not take.
Status MeasureImage(const VisionSpec& vision, ImageSize image, Tiling* out, Diag* diag);

struct ImageCounts {
  uint64_t n_tiles = 0;
  uint64_t n_rows = 0;
  uint64_t resize_ns = 0;  // pixels to patches
  uint64_t ns = 0;         // all
};

class ImageEncoder {
 public:
  // Builds an encoder in `block` of plan.TotalBytes(), aligned to kRegionAlign. Destroy() releases
  // the `owned` pages, if any. On failure the block is unused and the caller still owns `owned`.
  // `model` must outlive it.
  static Status Create(const Model& model, const ImagePlan& plan, Span<std::byte> block,
                       Span<std::byte> owned, ImageEncoder** out, Diag* diag);
  // Accepts null.
  static void Destroy(ImageEncoder* encoder);

  // out: f32 [ImageTokens, hidden of the decoder]. kBufferTooSmall; kBadArgument: as MeasureImage,
  // or a side is longer than max_side. After a failure `out` is unspecified, and the encoder as
  // before.
  Status Encode(const ImageView& image, Span<float> out, uint32_t* out_rows);

  // Ends the call in progress, or the next one, with kCancelled; callable from any thread.
  void Cancel() { cancel_.store(1, std::memory_order_relaxed); }

  const Model& model() const { return model_; }
  const ImagePlan& plan() const { return plan_; }
  const ImageCounts& counts() const { return counts_; }  // of the last call
  const TowerRunner& tower() const { return tower_; }
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  ImageEncoder(const Model& model, const ImagePlan& plan, Span<std::byte> block,
               Span<std::byte> owned);

  // Resizes to an image in `slice`; returns `image` itself if it has that size.
  ImageView ToSize(const ImageView& image, ImageSize size, Slice slice);
  // Writes the rows of a tile of pixels. Returns how many.
  Status EncodeTile(const ImageView& tile, float* out, uint32_t* out_rows);

  const Model& model_;
  ImagePlan plan_;
  Memory memory_;
  Span<std::byte> owned_;
  TowerRunner tower_;
  Resizer resizer_;
  std::atomic<uint32_t> cancel_{0};
  ImageCounts counts_;
  Diag diag_;
};

}  // namespace arn
