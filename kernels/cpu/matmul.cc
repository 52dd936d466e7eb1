// Matrix products: the loops around the micro-kernels.
//
// The outputs are cut into tiles of whole panels. A tile's panels stay in the second cache while
// all rows pass over them, so the weights come from memory once per run however many rows there
// are; that is what XNNPACK's own operators do not do at the pinned commit. Threads share the
// tiles; no sum is ever split, so the cut does not show in the result.
#include "kernels/cpu/plan.h"
#include "kernels/cpu/state.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// About a quarter of a second-level cache.
constexpr uint64_t kTileBytes = 256 * 1024;
// Tiles per thread, so that a thread that lags can be helped.
constexpr uint64_t kTilesPerThread = 5;
// Below this a tile costs less than handing it to another thread.
constexpr uint64_t kMinTileBytes = 16 * 1024;
// Columns that an accumulating product computes at a time, on the stack.
constexpr uint32_t kSumColumns = 256;
// Activations that are worth a thread of their own.
constexpr uint32_t kElementsPerTask = 16 * 1024;

// Panels (or rows) per tile, given the bytes of one.
size_t TilePanels(const State& state, uint64_t panels, uint64_t panel_bytes) {
  const uint64_t cached = Max<uint64_t>(1, kTileBytes / panel_bytes);
  const uint64_t shared = CeilDiv(panels, kTilesPerThread * state.threads.count());
  const uint64_t smallest = CeilDiv(kMinTileBytes, panel_bytes);
  return Min(cached, Max(shared, smallest));
}

// Rows of x to int8. Micro-kernels compute a whole tile: rows that do not exist alias the last one,
// but take the entries behind it, so those repeat it too.
const QuantizedRow* Quantize(const State& state, const float* x, uint32_t rows, uint32_t cols,
                             const QuantizedLayout& layout) {
  auto* entries = reinterpret_cast<QuantizedRow*>(state.quantized);
  auto* values = reinterpret_cast<int8_t*>(state.quantized + layout.rows_offset);
  const uint32_t tile = Max<uint32_t>(1, kElementsPerTask / cols);
  state.threads.ForTiles(rows, tile, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      entries[r] =
          state.simd.quantize_row(x + r * cols, cols, static_cast<uint32_t>(layout.stride_bytes),
                                  values + r * layout.stride_bytes);
    }
  });
  for (uint32_t i = 0; i < kExtraQuantizedRows; ++i) entries[rows + i] = entries[rows - 1];
  return entries;
}

// c += the product, in pieces that fit on the stack. args.n columns that begin at a panel.
void GemmAccumulate(const GemmKernel& kernel, DType dtype, const GemmArgs& args,
                    uint64_t panel_bytes) {
  float sums[kMaxTileRows * kSumColumns];
  const uint32_t nr = kernel.layout.nr;
  const uint32_t step = Max(nr, kSumColumns / nr * nr);
  for (uint32_t row = 0; row < args.rows; row += kernel.tile_rows) {
    for (uint32_t column = 0; column < args.n; column += step) {
      GemmArgs piece = args;
      piece.rows = Min(kernel.tile_rows, args.rows - row);
      piece.n = Min(step, args.n - column);
      piece.a = static_cast<const std::byte*>(args.a) + row * args.a_stride_bytes;
      if (args.quantized != nullptr) piece.quantized = args.quantized + row;
      piece.panels = args.panels + column / nr * panel_bytes;
      piece.c = sums;
      piece.c_stride_bytes = piece.n * sizeof(float);
      Gemm(kernel, dtype, piece);
      for (uint32_t r = 0; r < piece.rows; ++r) {
        float* c = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(args.c) +
                                            (row + r) * args.c_stride_bytes) +
                   column;
        for (uint32_t i = 0; i < piece.n; ++i) c[i] += sums[r * piece.n + i];
      }
    }
  }
}

// Kernels of our own. They take a tile of rows, interleaved; rows are shared out evenly, so that no
// tile is much lower than the others.
void TileMatmul(const State& state, const Weight& weight, const std::byte* panels, const float* x,
                uint32_t rows, bool accumulate, float* out) {
  const GemmKernel& kernel = *state.gemm.For(weight.dtype);
  const uint32_t nr = kernel.layout.nr;
  const auto k = static_cast<uint32_t>(AlignUp(weight.cols, kInt4BlockSize));
  const QuantizedLayout layout = QuantizedRows(rows, weight.cols);
  auto* entries = reinterpret_cast<QuantizedRow*>(state.quantized);
  auto* values = reinterpret_cast<uint8_t*>(state.quantized + layout.rows_offset);
  const auto n_tiles = static_cast<uint32_t>(CeilDiv(rows, kernel.tile_rows));
  const auto first_row = [&](size_t tile) { return static_cast<uint32_t>(tile * rows / n_tiles); };
  state.threads.ForTiles(n_tiles, 1, [&](size_t begin, size_t) {
    const uint32_t first = first_row(begin), height = first_row(begin + 1) - first;
    for (uint32_t r = 0; r < height; ++r) {
      entries[first + r] = state.simd.quantize_quads(
          x + uint64_t{first + r} * weight.cols, weight.cols, k, height * 4,
          values + first * layout.stride_bytes + uint64_t{r} * 4);
    }
  });
  uint64_t panel_bytes = 0;
  (void)PackedBytes(weight.dtype, kernel.layout, nr, weight.cols, &panel_bytes);
  const uint64_t n_panels = CeilDiv(weight.rows, nr);
  state.threads.ForTiles(
      n_panels, TilePanels(state, n_panels, panel_bytes), [&](size_t begin, size_t end) {
        TileArgs tile = {};
        tile.k = k;
        tile.accumulate = accumulate;
        tile.panels = panels + begin * panel_bytes;
        tile.n = static_cast<uint32_t>(Min<uint64_t>(end * nr, weight.rows) - begin * nr);
        tile.c_stride = weight.rows;
        for (uint32_t t = 0; t < n_tiles; ++t) {
          const uint32_t first = first_row(t);
          tile.rows = first_row(t + 1) - first;
          tile.a = values + first * layout.stride_bytes;
          tile.quantized = entries + first;
          tile.c = out + uint64_t{first} * weight.rows + begin * nr;
          kernel.tile(tile);
        }
      });
}

void PanelMatmul(const State& state, const Weight& weight, const std::byte* panels, const float* x,
                 uint32_t rows, bool accumulate, float* out) {
  const GemmKernel& kernel = *state.gemm.For(weight.dtype);
  const uint32_t nr = kernel.layout.nr;
  GemmArgs args = {};
  args.rows = rows;
  args.k = weight.cols;
  args.a = x;
  args.a_stride_bytes = weight.cols * sizeof(float);
  if (weight.dtype != DType::kF32) {
    const QuantizedLayout layout = QuantizedRows(rows, weight.cols);
    args.quantized = Quantize(state, x, rows, weight.cols, layout);
    args.a = state.quantized + layout.rows_offset;
    args.a_stride_bytes = layout.stride_bytes;
    if (weight.dtype == DType::kInt4) {
      args.k = static_cast<uint32_t>(AlignUp(weight.cols, kInt4BlockSize));
    }
  }
  args.c_stride_bytes = weight.rows * sizeof(float);
  uint64_t panel_bytes = 0;
  (void)PackedBytes(weight.dtype, kernel.layout, nr, weight.cols, &panel_bytes);
  const uint64_t n_panels = CeilDiv(weight.rows, nr);
  state.threads.ForTiles(
      n_panels, TilePanels(state, n_panels, panel_bytes), [&](size_t begin, size_t end) {
        GemmArgs tile = args;
        tile.panels = panels + begin * panel_bytes;
        tile.n = static_cast<uint32_t>(Min<uint64_t>(end * nr, weight.rows) - begin * nr);
        tile.c = out + begin * nr;
        if (accumulate) {
          GemmAccumulate(kernel, weight.dtype, tile, panel_bytes);
        } else {
          Gemm(kernel, weight.dtype, tile);
        }
      });
}

void HalfMatmul(const State& state, const Weight& weight, const float* x, uint32_t rows,
                bool accumulate, float* out) {
  const RowsBlobLayout blob = RowsBlob(weight.dtype, weight.rows, weight.cols);
  const HalfMatmulFn matmul =
      weight.dtype == DType::kF16 ? state.simd.f16_matmul : state.simd.bf16_matmul;
  // Tiles of whole register tiles.
  constexpr uint64_t kRowsPerUnit = 4;
  const uint64_t units = CeilDiv(weight.rows, kRowsPerUnit);
  const size_t tile_units = TilePanels(state, units, kRowsPerUnit * blob.row_bytes);
  state.threads.ForTiles(units, tile_units, [&](size_t begin, size_t end) {
    const uint64_t first = begin * kRowsPerUnit;
    HalfMatmulArgs args;
    args.x = x;
    args.m = rows;
    args.k = weight.cols;
    args.w = reinterpret_cast<const uint16_t*>(weight.data + first * blob.row_bytes);
    args.bias = reinterpret_cast<const float*>(weight.data + blob.bias_offset) + first;
    args.n = Min<uint64_t>(end * kRowsPerUnit, weight.rows) - first;
    args.c = out + first;
    args.c_stride = weight.rows;
    args.accumulate = accumulate;
    matmul(args);
  });
}

}  // namespace

void Matmul(const State& state, WeightId id, const float* x, uint32_t rows, bool accumulate,
            float* out) {
  if (rows == 0) return;
  const Weight& weight = state.program->weights[id];
  switch (weight.dtype) {
    case DType::kF32:
    case DType::kInt8:
    case DType::kInt4:
      if (state.gemm.For(weight.dtype)->tile != nullptr) {
        TileMatmul(state, weight, state.matrices[id], x, rows, accumulate, out);
      } else {
        PanelMatmul(state, weight, state.matrices[id], x, rows, accumulate, out);
      }
      return;
    case DType::kF16:
    case DType::kBf16: HalfMatmul(state, weight, x, rows, accumulate, out); return;
  }
}

}  // namespace arn::cpu
