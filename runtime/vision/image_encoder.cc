#include "runtime/vision/image_encoder.h"

#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "platform/os/pages.h"
#include "runtime/model/image_place.h"
#include "runtime/vision/patches.h"

namespace arn {

Status MeasureImage(const VisionSpec& vision, ImageSize image, Tiling* out, Diag* diag) {
  if (image.width == 0 || image.height == 0 || image.width > kMostImageSide ||
      image.height > kMostImageSide) {
    return diag->Fail(Status::kBadArgument, "an image of %u x %u pixels, sides are 1 to %u",
                      image.width, image.height, kMostImageSide);
  }
  *out = TilingOf(vision, image);
  if (out->n_tiles() == 0) {
    return diag->Fail(Status::kBadArgument, "an image of %u x %u pixels is too long for its width",
                      image.width, image.height);
  }
  const uint32_t longest = BoundsOf(vision).longest_side;
  for (uint32_t i = 0; i < out->n_tiles(); ++i) {
    const ImageSize tile = out->TileSize(i);
    const PatchGrid grid = GridOf(vision, tile);
    if (tile.width <= longest && tile.height <= longest &&
        uint64_t{grid.rows} * grid.cols <= vision.max_patches) {
      continue;
    }
    return diag->Fail(Status::kBadArgument,
                      "an image of %u x %u pixels is too long for its width: it would become %u x "
                      "%u patches, the model takes %u",
                      image.width, image.height, grid.cols, grid.rows, vision.max_patches);
  }
  return Status::kOk;
}

ImageEncoder::ImageEncoder(const Model& model, const ImagePlan& plan, Span<std::byte> block,
                           Span<std::byte> owned)
    : model_(model),
      plan_(plan),
      memory_(PartitionBlock(plan, block.data())),
      owned_(owned),
      tower_(plan_, memory_),
      resizer_(plan.options.max_side, plan.bounds.longest_side,
               {memory_.At(plan.resizer), static_cast<size_t>(plan.resizer.bytes)}) {
  plan_.Bind();
}

Status ImageEncoder::Create(const Model& model, const ImagePlan& plan, Span<std::byte> block,
                            Span<std::byte> owned, ImageEncoder** out, Diag* diag) {
  *out = nullptr;
  ARN_TRY(CheckWeights(model, diag));
  const Memory memory = PartitionBlock(plan, block.data());
  auto* encoder = new (memory.At(plan.object)) ImageEncoder(model, plan, block, owned);
  const Status status = encoder->tower_.Load(model.spec.vision, diag);
  encoder->plan_.options.gpu = GpuOptions();  // its strings may be gone later
  if (status != Status::kOk) {
    encoder->tower_.Unload();
    encoder->~ImageEncoder();
    return status;
  }
  *out = encoder;
  return Status::kOk;
}

void ImageEncoder::Destroy(ImageEncoder* encoder) {
  if (encoder == nullptr) return;
  encoder->tower_.Unload();
  const Span<std::byte> owned = encoder->owned_;
  encoder->~ImageEncoder();
  ReleasePages(owned);
}

ImageView ImageEncoder::ToSize(const ImageView& image, ImageSize size, Slice slice) {
  if (size == ImageSize{image.width, image.height}) return image;
  auto* pixels = memory_.As<uint8_t>(slice);
  resizer_.Resize(image, size, model_.spec.vision.image.resample, pixels);
  return {pixels, size.width, size.height, uint64_t{kPixelChannels} * size.width};
}

Status ImageEncoder::EncodeTile(const ImageView& tile, float* out, uint32_t* out_rows) {
  const VisionSpec& vision = model_.spec.vision;
  const uint64_t start = MonotonicNs();
  const PatchGrid grid = GridOf(vision, {tile.width, tile.height});
  const uint32_t n = grid.rows * grid.cols;
  if (n > plan_.program.max_encoder_rows) {
    return diag_.Fail(Status::kInternal, "a tile of %u patches, there is room for %u", n,
                      plan_.program.max_encoder_rows);
  }
  auto* rows = memory_.As<float>(plan_.rows);
  WritePixels(vision, tile, rows);
  if (vision.position_side != 0) {
    const auto* positions =
        reinterpret_cast<const float*>(model_.spec.weights[vision.positions].data);
    const Span<double> taps = {memory_.As<double>(plan_.taps),
                               static_cast<size_t>(plan_.taps.bytes / sizeof(double))};
    WritePositions(vision, positions, grid, taps, rows);
  }
  RunArgs args;
  if (plan_.axis_positions.bytes != 0) {
    auto* by_axis = memory_.As<uint32_t>(plan_.axis_positions);
    WriteAxisPositions(vision, grid, by_axis);
    args.axis_positions = {by_axis, size_t{n} * kRopeAxes};
  }
  counts_.resize_ns += MonotonicNs() - start;
  auto* sequence = memory_.As<SequenceRows>(plan_.sequence);
  *sequence = {0, n, 0, nullptr};
  if (vision.window_side != 0) {
    auto* windows = memory_.As<SequenceRows>(plan_.windows);
    args.parts = {windows, WriteWindows(vision, grid, windows)};
  }
  args.is_encoder = true;
  args.features = {rows, size_t{n} * vision.patch_row_floats()};
  args.sequences = {sequence, 1};
  args.logit_rows = LogitRows::kNone;
  args.cancel = &cancel_;
  const Status status = tower_.Run(args, &diag_);
  if (status == Status::kCancelled) {
    cancel_.store(0, std::memory_order_relaxed);
    return diag_.Fail(status, "cancelled after %llu tiles",
                      static_cast<unsigned long long>(counts_.n_tiles));
  }
  ARN_TRY(status);
  *out_rows = n / vision.merged_patches();
  const uint32_t hidden = model_.spec.hidden, n_vectors = VectorFloats(model_.spec) / hidden;
  const PatchGrid tokens = TokenGridOf(vision, grid);
  const uint32_t span = Max(tokens.rows, tokens.cols), stride = EmbeddingFloats(model_.spec);
  ForEachToken(vision, tokens, [&](uint32_t index, uint32_t row, uint32_t col) {
    float* to = out + (uint64_t{row} * tokens.cols + col) * stride;
    for (uint32_t i = 0; i < n_vectors; ++i, to += hidden) {
      std::memcpy(to, tower_.Rows(i) + uint64_t{index} * hidden, hidden * sizeof(float));
    }
    if (vision.has_mrope) WritePlace({row, col, span}, to);
  });
  ++counts_.n_tiles;
  counts_.n_rows += *out_rows;
  return Status::kOk;
}

Status ImageEncoder::Encode(const ImageView& image, Span<float> out, uint32_t* out_rows) {
  *out_rows = 0;
  counts_ = ImageCounts();
  const uint64_t start = MonotonicNs();
  const VisionSpec& vision = model_.spec.vision;
  const uint32_t most = plan_.options.max_side;
  Tiling tiling;
  ARN_TRY(MeasureImage(vision, {image.width, image.height}, &tiling, &diag_));
  if (image.width > most || image.height > most) {
    return diag_.Fail(Status::kBadArgument,
                      "an image of %u x %u pixels, the encoder was created for sides of max_side "
                      "%u",
                      image.width, image.height, most);
  }
  const uint32_t n_rows = ImageTokens(vision, tiling), width = EmbeddingFloats(model_.spec);
  if (out.size() / width < n_rows) {
    return diag_.Fail(Status::kBufferTooSmall, "%u rows of %u floats, the buffer has %zu", n_rows,
                      width, out.size());
  }
  ImageView source = image;
  float* to = out.data();
  const auto encode = [&](const ImageView& tile) {
    uint32_t n = 0;
    ARN_TRY(EncodeTile(tile, to, &n));
    to += uint64_t{n} * width;
    return Status::kOk;
  };
  if (tiling.first.exists()) source = ToSize(image, tiling.first, plan_.whole);
  if (tiling.n_grid_tiles() != 0) {
    const ImageView grid = ToSize(source, tiling.grid, plan_.grid);
    const ImageSize tile = tiling.TileSize(0);
    for (uint32_t i = 0; i < tiling.n_grid_tiles(); ++i) {
      const uint64_t x = uint64_t{kPixelChannels} * tile.width * (i % tiling.cols);
      const uint8_t* corner = grid.Row(tile.height * (i / tiling.cols)) + x;
      ARN_TRY(encode({corner, tile.width, tile.height, grid.stride}));
    }
    // Rules that resize first make the whole image of the one that was cut.
    if (tiling.first.exists()) source = grid;
  }
  if (tiling.whole.exists()) {
    const bool reads_whole = source.pixels == memory_.As<uint8_t>(plan_.whole);
    ARN_TRY(encode(ToSize(source, tiling.whole, reads_whole ? plan_.grid : plan_.whole)));
  }
  *out_rows = n_rows;
  counts_.ns = MonotonicNs() - start;
  return Status::kOk;
}

}  // namespace arn
