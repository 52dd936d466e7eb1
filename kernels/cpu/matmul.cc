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

// Panels per tile, given the bytes of one.
size_t TilePanels(const State& state, uint64_t panels, uint64_t panel_bytes) {
  const uint64_t cached = Max<uint64_t>(1, kTileBytes / panel_bytes);
  const uint64_t shared = CeilDiv(panels, kTilesPerThread * state.threads.count());
  const uint64_t smallest = CeilDiv(kMinTileBytes, panel_bytes);
  const uint64_t wanted = Min(cached, Max(shared, smallest));
  // Of sizes near it the one whose slowest thread has the fewest panels: of 9 tiles for 2 threads
  // one would do 5.
  uint64_t best = wanted, fewest = UINT64_MAX;
  for (uint64_t tile = wanted; 2 * tile >= wanted && tile > 0; --tile) {
    const uint64_t most = CeilDiv(CeilDiv(panels, tile), state.threads.count()) * tile;
    if (most < fewest) best = tile, fewest = most;
  }
  return best;
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
void GemmAccumulate(const State& state, const GemmKernel& kernel, DType dtype, const GemmArgs& args,
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
        state.simd.add_row(sums + r * piece.n, piece.n, c);
      }
    }
  }
}

// Kernels of our own. They take a tile of rows, interleaved; rows are shared out evenly, so that no
// tile is much lower than the others.
class RowTiles {
 public:
  RowTiles(uint32_t rows, uint32_t most)
      : rows_(rows), count_(static_cast<uint32_t>(CeilDiv(rows, most))) {}
  uint32_t count() const { return count_; }
  uint32_t First(uint64_t tile) const { return static_cast<uint32_t>(tile * rows_ / count_); }

 private:
  uint32_t rows_, count_;
};

// The rows of a float product as its kernel reads them: tile by tile, f32 [cols][rows of the tile].
const float* Interleave(const State& state, const float* x, const RowTiles& tiles, uint32_t rows,
                        uint32_t cols) {
  if (rows == 1) return x;
  auto* out = reinterpret_cast<float*>(state.quantized);
  state.threads.ForTiles(tiles.count(), 1, [&](size_t tile, size_t) {
    const uint32_t first = tiles.First(tile), height = tiles.First(tile + 1) - first;
    float* to = out + uint64_t{first} * cols;
    for (uint32_t r = 0; r < height; ++r) {
      const float* from = x + uint64_t{first + r} * cols;
      for (uint32_t c = 0; c < cols; ++c) to[uint64_t{c} * height + r] = from[c];
    }
  });
  return out;
}

// The same for a product of integers; see TileArgs. `cols` has been padded to whole groups.
void QuantizeTiles(const State& state, const float* x, const RowTiles& tiles, uint32_t n,
                   uint32_t cols, uint32_t group, uint64_t stride_bytes, QuantizedRow* entries,
                   std::byte* values) {
  state.threads.ForTiles(tiles.count(), 1, [&](size_t tile, size_t) {
    const uint32_t first = tiles.First(tile), height = tiles.First(tile + 1) - first;
    auto* to = reinterpret_cast<uint8_t*>(values + first * stride_bytes);
    for (uint32_t r = 0; r < height; ++r) {
      entries[first + r] = state.simd.quantize_groups(x + uint64_t{first + r} * n, n, cols, group,
                                                      height * group, to + uint64_t{r} * group);
    }
  });
}

void TileMatmul(const State& state, const Weight& weight, const std::byte* panels, const float* x,
                uint32_t rows, bool accumulate, float* out) {
  const GemmKernel& kernel = *state.gemm.For(weight.dtype);
  const uint32_t nr = kernel.layout.nr;
  const RowTiles tiles(rows, kernel.tile_rows);
  uint32_t k = weight.cols;
  const QuantizedRow* quantized = nullptr;
  const std::byte* a;
  uint64_t a_stride_bytes;
  if (weight.dtype == DType::kInt4 || weight.dtype == DType::kInt8) {
    const uint32_t group = kernel.layout.kr;
    k = static_cast<uint32_t>(
        AlignUp(weight.cols, weight.dtype == DType::kInt4 ? kInt4BlockSize : group));
    const QuantizedLayout layout = QuantizedRows(rows, weight.cols);
    auto* entries = reinterpret_cast<QuantizedRow*>(state.quantized);
    std::byte* values = state.quantized + layout.rows_offset;
    QuantizeTiles(state, x, tiles, weight.cols, k, group, layout.stride_bytes, entries, values);
    quantized = entries;
    a = values;
    a_stride_bytes = layout.stride_bytes;
  } else {
    a = reinterpret_cast<const std::byte*>(Interleave(state, x, tiles, rows, weight.cols));
    a_stride_bytes = uint64_t{weight.cols} * sizeof(float);
  }
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
        for (uint32_t t = 0; t < tiles.count(); ++t) {
          const uint32_t first = tiles.First(t);
          tile.rows = tiles.First(t + 1) - first;
          tile.a = a + first * a_stride_bytes;
          tile.quantized = quantized == nullptr ? nullptr : quantized + first;
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
          GemmAccumulate(state, kernel, weight.dtype, tile, panel_bytes);
        } else {
          Gemm(kernel, weight.dtype, tile);
        }
      });
}

}  // namespace

void AskAhead(const State& state, Span<const Step> steps) {
  for (const Step& step : steps) {
    if (step.op != Op::kLinear && step.op != Op::kLogits) continue;
    const Weight& weight = state.program->weights[step.weight];
    uint64_t panel_bytes = 0;
    const GemmKernel& kernel = *state.gemm.For(weight.dtype);
    (void)PackedBytes(weight.dtype, kernel.layout, kernel.layout.nr, weight.cols, &panel_bytes);
    return state.threads.SetAhead(state.matrices[step.weight],
                                  CeilDiv(weight.rows, kernel.layout.nr) * panel_bytes);
  }
  state.threads.SetAhead(nullptr, 0);
}

void Matmul(const State& state, WeightId id, const float* x, uint32_t rows, bool accumulate,
            float* out) {
  if (rows == 0) return;
  const Weight& weight = state.program->weights[id];
  if (state.gemm.For(weight.dtype)->tile != nullptr) {
    TileMatmul(state, weight, state.matrices[id], x, rows, accumulate, out);
  } else {
    PanelMatmul(state, weight, state.matrices[id], x, rows, accumulate, out);
  }
}

}  // namespace arn::cpu
