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

// Weights of the two trained rows (or columns) around row `i` of n: those of torch.linspace from
// the first to the last.
FilterTaps CornerTaps(uint32_t trained, uint32_t n, uint32_t i, Span<double> weights) {
  const auto last = static_cast<float>(trained - 1);
  const float step = n == 1 ? 0.0f : last / static_cast<float>(n - 1);
  const float at = i < n / 2 || n == 1 ? step * static_cast<float>(i)
                                       : last - step * static_cast<float>(n - 1 - i);
  const auto first = static_cast<uint32_t>(at);
  const float fraction = at - static_cast<float>(first);
  weights[0] = 1.0f - fraction;
  weights[1] = fraction;
  return {first, first + 1 < trained ? 2u : 1u};
}

FilterTaps PositionTaps(GridPositions kind, uint32_t trained, uint32_t n, uint32_t i,
                        Span<double> weights) {
  return kind == GridPositions::kCorners ? CornerTaps(trained, n, i, weights)
                                         : MakeTaps(Resample::kBilinear, trained, n, i, weights);
}

}  // namespace

void WritePixels(const VisionSpec& vision, const ImageView& tile, float* rows) {
  const uint32_t side = vision.patch_size, stride = vision.patch_row_floats();
  Normaliser by[kPixelChannels];
  for (uint32_t c = 0; c < kPixelChannels; ++c) by[c] = NormaliserOf(vision.image, c);
  const PatchGrid grid = GridOf(vision, {tile.width, tile.height});
  ForEachPatch(vision, grid, [&](uint32_t index, uint32_t row, uint32_t col) {
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
  const uint32_t stride = vision.patch_row_floats();
  const size_t half = taps.size() / 2;
  const bool has_axes = vision.grid_positions == GridPositions::kAxes;
  const bool is_trained = grid.rows == side && grid.cols == side;
  ForEachPatch(vision, grid, [&](uint32_t index, uint32_t row, uint32_t col) {
    float* out = rows + uint64_t{index} * stride + vision.patch_floats();
    if (has_axes) {
      const float* by_col = positions + uint64_t{col} * width;
      const float* by_row = positions + uint64_t{side + row} * width;
      for (uint32_t i = 0; i < width; ++i) out[i] = by_col[i] + by_row[i];
      return;
    }
    if (is_trained) {
      std::memcpy(out, positions + uint64_t{row * side + col} * width, width * sizeof(float));
      return;
    }
    const Span<double> of_rows = taps.subspan(0, half), of_cols = taps.subspan(half, half);
    const FilterTaps ys = PositionTaps(vision.grid_positions, side, grid.rows, row, of_rows);
    const FilterTaps xs = PositionTaps(vision.grid_positions, side, grid.cols, col, of_cols);
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

void WriteAxisPositions(const VisionSpec& vision, PatchGrid grid, uint32_t* out) {
  ForEachPatch(vision, grid, [&](uint32_t index, uint32_t row, uint32_t col) {
    uint32_t* positions = out + size_t{index} * kRopeAxes;
    positions[0] = 0;
    positions[1] = row;
    positions[2] = col;
  });
}

uint32_t WriteWindows(const VisionSpec& vision, PatchGrid grid, SequenceRows* out) {
  uint32_t n = 0, row = 0;
  ForEachWindow(vision, TokenGridOf(vision, grid), [&](const TokenWindow& window) {
    const uint32_t n_rows = window.rows * window.cols * vision.merged_patches();
    out[n++] = {row, n_rows, 0, nullptr};
    row += n_rows;
  });
  return n;
}

}  // namespace arn
