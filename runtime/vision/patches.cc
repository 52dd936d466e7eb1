#include "runtime/vision/patches.h"

#include <cstring>

namespace arn {
namespace {

// The order of torchvision's operations: the scale is folded into mean and deviation.
struct Normaliser {
  float mean, deviation;
};

Normaliser NormaliserOf(const ImageRules& rules, uint32_t channel) {
  const float inverse = 1.0f / rules.scale;
  return {rules.mean[channel] * inverse, rules.std[channel] * inverse};
}

}  // namespace

void WritePixels(const VisionSpec& vision, const ImageView& tile, float* rows) {
  const uint32_t side = vision.patch_size, stride = PatchRowFloats(vision);
  Normaliser by[kPixelChannels];
  for (uint32_t c = 0; c < kPixelChannels; ++c) by[c] = NormaliserOf(vision.image, c);
  const PatchGrid grid = GridOf(vision, {tile.width, tile.height});
  ForEachPatch(grid, vision.merge_side, [&](uint32_t index, uint32_t row, uint32_t col) {
    float* out = rows + uint64_t{index} * stride;
    for (uint32_t c = 0; c < kPixelChannels; ++c) {
      for (uint32_t y = 0; y < side; ++y) {
        const uint8_t* from = tile.Row(row * side + y) + uint64_t{kPixelChannels} * col * side + c;
        for (uint32_t x = 0; x < side; ++x, from += kPixelChannels) {
          *out++ = (static_cast<float>(*from) - by[c].mean) / by[c].deviation;
        }
      }
    }
  });
}

void WritePositions(const VisionSpec& vision, const float* positions, PatchGrid grid,
                    Span<double> taps, float* rows) {
  const uint32_t side = vision.position_side, width = vision.hidden;
  const uint32_t stride = PatchRowFloats(vision);
  const size_t half = taps.size() / 2;
  const bool is_trained = grid.rows == side && grid.cols == side;
  ForEachPatch(grid, vision.merge_side, [&](uint32_t index, uint32_t row, uint32_t col) {
    float* out = rows + uint64_t{index} * stride + vision.patch_floats();
    if (is_trained) {
      std::memcpy(out, positions + uint64_t{row * side + col} * width, width * sizeof(float));
      return;
    }
    const Span<double> of_rows = taps.subspan(0, half), of_cols = taps.subspan(half, half);
    const FilterTaps ys = MakeTaps(Resample::kBilinear, side, grid.rows, row, of_rows);
    const FilterTaps xs = MakeTaps(Resample::kBilinear, side, grid.cols, col, of_cols);
    std::memset(out, 0, width * sizeof(float));
    for (uint32_t y = 0; y < ys.n; ++y) {
      for (uint32_t x = 0; x < xs.n; ++x) {
        const auto weight = static_cast<float>(of_rows[y] * of_cols[x]);
        const float* from = positions + uint64_t{(ys.first + y) * side + xs.first + x} * width;
        for (uint32_t i = 0; i < width; ++i) out[i] += weight * from[i];
      }
    }
  });
}

}  // namespace arn
