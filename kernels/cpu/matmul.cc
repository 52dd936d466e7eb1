// Matmuls: the loops around the micro-kernels.
//
// The outputs are cut into tiles of whole panels. A tile's panels stay in the L2 cache while all
// rows use them, so each run reads the weights from memory once, for any number of rows. XNNPACK's
// own operators do not do this at the pinned commit. Threads share the tiles. No sum is split
// between tiles, so results do not depend on the tiling.
#include <atomic>
#include <cmath>
#include <cstring>

#include "kernels/contract/code_type.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/cpu_plan.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// About a quarter of an L2 cache.
constexpr uint64_t kTileBytes = 256 * 1024;
// Tiles per thread, for load balancing.
constexpr uint64_t kTilesPerThread = 5;
// Below this a tile costs less than its dispatch to another thread.
constexpr uint64_t kMinTileBytes = 16 * 1024;
// Columns per block of an accumulating matmul, on the stack.
constexpr uint32_t kSumColumns = 256;
// Columns per block of BestColumn, on the stack.
constexpr uint32_t kBestColumns = 1024;
// Minimum number of activations per task.
constexpr uint32_t kElementsPerTask = 16 * 1024;

// Returns the panels per tile, given the bytes per panel.
size_t TilePanels(const State& state, uint64_t panels, uint64_t panel_bytes) {
  const uint64_t cached = Max<uint64_t>(1, kTileBytes / panel_bytes);
  const uint64_t shared = CeilDiv(panels, kTilesPerThread * state.threads.count());
  const uint64_t smallest = CeilDiv(kMinTileBytes, panel_bytes);
  const uint64_t wanted = Min(cached, Max(shared, smallest));
  // Among similar sizes, takes the one whose slowest thread has the fewest panels: with 9 tiles and
  // 2 threads, one thread would have 5.
  uint64_t best = wanted, fewest = UINT64_MAX;
  for (uint64_t tile = wanted; 2 * tile >= wanted && tile > 0; --tile) {
    const uint64_t most = CeilDiv(CeilDiv(panels, tile), state.threads.count()) * tile;
    if (most < fewest) best = tile, fewest = most;
  }
  return best;
}

// Quantises rows of x to int8. Micro-kernels compute a whole tile: missing rows alias the last row
// but read the entries after it, so those repeat the last entry.
void Quantize(const State& state, const float* x, uint32_t rows, uint32_t cols,
              uint64_t stride_bytes, QuantizedRow* entries, std::byte* values) {
  const uint32_t tile = Max<uint32_t>(1, kElementsPerTask / cols);
  state.threads.ForTiles(rows, tile, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      entries[r] = state.simd.quantize_row(x + r * cols, cols, static_cast<uint32_t>(stride_bytes),
                                           reinterpret_cast<int8_t*>(values + r * stride_bytes));
    }
  });
  for (uint32_t i = 0; i < kExtraQuantizedRows; ++i) entries[rows + i] = entries[rows - 1];
}

// Computes the quantisation residual of x[n]. `values`: groups of integers, `stride` bytes apart,
// each byte XORed with `flip`.
void LeftOver(const float* x, uint32_t n, const QuantizedRow& row, const std::byte* values,
              uint32_t group, uint64_t stride, uint8_t flip, float* out) {
  for (uint32_t first = 0; first < n; first += group, values += stride) {
    const uint32_t end = Min(group, n - first);
    for (uint32_t i = 0; i < end; ++i) {
      const auto q = static_cast<int8_t>(static_cast<uint8_t>(values[i]) ^ flip);
      out[first + i] = x[first + i] - static_cast<float>(q - row.zero_point) * row.scale;
    }
  }
}

// Doubles the scales of a split row and its residual (exact). Both matmuls add the bias, so the
// caller halves their sum.
void JoinHalves(QuantizedRow* pair) {
  pair[0].scale *= 2;
  pair[1].scale *= 2;
}

// Quantize for split rows: each row, then its residual (Program::splits_rows). `left`: f32 [rows,
// cols].
void QuantizeSplit(const State& state, const float* x, uint32_t rows, uint32_t cols,
                   uint64_t stride_bytes, QuantizedRow* entries, std::byte* values, float* left) {
  const uint32_t tile = Max<uint32_t>(1, kElementsPerTask / cols);
  const auto stride = static_cast<uint32_t>(stride_bytes);
  state.threads.ForTiles(rows, tile, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float* row = x + r * cols;
      float* rest = left + r * cols;
      std::byte* to = values + 2 * r * stride_bytes;
      QuantizedRow* pair = entries + 2 * r;
      pair[0] = state.simd.quantize_row(row, cols, stride, reinterpret_cast<int8_t*>(to));
      LeftOver(row, cols, pair[0], to, cols, 0, 0, rest);
      pair[1] =
          state.simd.quantize_row(rest, cols, stride, reinterpret_cast<int8_t*>(to + stride_bytes));
      JoinHalves(pair);
    }
  });
  for (uint32_t i = 0; i < kExtraQuantizedRows; ++i) entries[2 * rows + i] = entries[2 * rows - 1];
}

// Row tiles of our own kernels, which read a tile of rows interleaved. Rows are distributed evenly,
// so that no tile is much smaller than the others.
class RowTiles {
 public:
  RowTiles(uint32_t rows, uint32_t most)
      : rows_(rows), count_(static_cast<uint32_t>(CeilDiv(rows, most))) {}
  uint32_t count() const { return count_; }
  uint32_t First(uint64_t tile) const { return static_cast<uint32_t>(tile * rows_ / count_); }

 private:
  uint32_t rows_, count_;
};

// Interleaves the rows of a float matmul, tile by tile: f32 [cols][rows of the tile].
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

// Quantises and interleaves the rows of an integer matmul (format: TileArgs). `cols` is padded to
// whole groups.
void QuantizeTiles(const State& state, const float* x, const RowTiles& tiles, uint32_t n,
                   uint32_t cols, uint32_t group, uint64_t stride_bytes, bool is_symmetric,
                   QuantizedRow* entries, std::byte* values) {
  state.threads.ForTiles(tiles.count(), 1, [&](size_t tile, size_t) {
    const uint32_t first = tiles.First(tile), height = tiles.First(tile + 1) - first;
    auto* to = reinterpret_cast<uint8_t*>(values + first * stride_bytes);
    for (uint32_t r = 0; r < height; ++r) {
      entries[first + r] =
          state.simd.quantize_groups(x + uint64_t{first + r} * n, n, cols, group, height * group,
                                     is_symmetric, to + uint64_t{r} * group);
    }
  });
}

// QuantizeTiles for split rows: rows and residuals alternate.
void QuantizeSplitTiles(const State& state, const float* x, const RowTiles& tiles, uint32_t n,
                        uint32_t cols, uint32_t group, uint64_t stride_bytes, bool is_symmetric,
                        QuantizedRow* entries, std::byte* values, float* left) {
  constexpr uint8_t kFlip = 0x80;
  state.threads.ForTiles(tiles.count(), 1, [&](size_t tile, size_t) {
    const uint32_t first = tiles.First(tile), height = 2 * (tiles.First(tile + 1) - first);
    std::byte* to = values + 2 * first * stride_bytes;
    for (uint32_t r = 0; r < height; r += 2, to += 2 * group) {
      const uint32_t row = first + r / 2;
      const float* from = x + uint64_t{row} * n;
      float* rest = left + uint64_t{row} * n;
      QuantizedRow* pair = entries + 2 * row;
      const auto quantize = [&](const float* values_of, std::byte* at) {
        return state.simd.quantize_groups(values_of, n, cols, group, height * group, is_symmetric,
                                          reinterpret_cast<uint8_t*>(at));
      };
      pair[0] = quantize(from, to);
      LeftOver(from, n, pair[0], to, group, uint64_t{height} * group, kFlip, rest);
      pair[1] = quantize(rest, to + group);
      JoinHalves(pair);
    }
  });
}

// x W^T + bias, with the rows of x converted to the kernel's format.
class PanelMatmul {
 public:
  PanelMatmul(const State& state, WeightId id, const float* x, uint32_t rows)
      : state_(state),
        weight_(state.program->weights[id]),
        kernel_(*state.gemm.For(weight_.dtype)),
        panels_(state.matrices[id]),
        is_split_(state.program->splits_rows && IsInteger(weight_.dtype)),
        tiles_(rows, is_split_ ? Max(kernel_.tile_rows / 2, 1u) : kernel_.tile_rows),
        rows_(rows),
        k_(weight_.cols) {
    (void)PackedBytes(weight_.dtype, kernel_.layout, nr(), weight_.cols, &panel_bytes_);
    if (IsInteger(weight_.dtype)) {
      TakeIntegers(x);
    } else {
      a_ = reinterpret_cast<const std::byte*>(
          kernel_.tile == nullptr ? x : Interleave(state, x, tiles_, rows, weight_.cols));
      a_stride_bytes_ = weight_.cols * sizeof(float);
    }
  }

  uint32_t nr() const { return kernel_.layout.nr; }

  QuantizedInput Input() const {
    if (quantized_ == nullptr) return {};
    QuantizedInput input;
    input.n_tiles = tiles_.count();
    input.n_rows = rows_;
    input.is_split = is_split_;
    input.is_offset = kernel_.tile != nullptr;
    input.group = kernel_.tile == nullptr ? 0 : kernel_.layout.kr;
    input.rows = quantized_;
    input.values = a_;
    input.stride_bytes = a_stride_bytes_;
    return input;
  }

  // Calls body(begin, end) in parallel for panels [begin, end), until the step is cut.
  template <typename Body>
  void ForPanels(const Body& body) const {
    const uint64_t n = CeilDiv(weight_.rows, nr());
    state_.threads.ForTiles(n, TilePanels(state_, n, panel_bytes_), [&](size_t begin, size_t end) {
      if (!IsCut(state_)) body(begin, end);
    });
  }
  // Number of columns in panels [begin, end).
  uint32_t Columns(size_t begin, size_t end) const {
    return static_cast<uint32_t>(Min<uint64_t>(end * nr(), weight_.rows) - begin * nr());
  }

  // c[rows, Columns(begin, end)] (+)= x W^T + bias; c_stride in elements.
  void Multiply(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride) const {
    if (is_split_) return MultiplySplit(begin, end, accumulate, c, c_stride);
    if (kernel_.tile != nullptr) return MultiplyTiles(begin, end, accumulate, c, c_stride);
    if (accumulate) return AddPanels(begin, end, c, c_stride);
    MultiplyPanels(0, rows_, quantized_, begin, end, c, c_stride);
  }

 private:
  void TakeIntegers(const float* x) {
    const QuantizedLayout layout = QuantizedRows(rows_, weight_.cols, is_split_);
    auto* left = reinterpret_cast<float*>(state_.quantized + layout.left_offset);
    auto* entries = reinterpret_cast<QuantizedRow*>(state_.quantized);
    std::byte* values = state_.quantized + layout.rows_offset;
    const uint32_t group = kernel_.tile == nullptr ? 1 : kernel_.layout.kr;
    k_ = static_cast<uint32_t>(PaddedInputs(weight_.dtype, weight_.cols, group));
    const bool is_symmetric = TakesSymmetricRows(weight_.dtype);
    if (is_split_ && kernel_.tile == nullptr) {
      QuantizeSplit(state_, x, rows_, weight_.cols, layout.stride_bytes, entries, values, left);
    } else if (is_split_) {
      QuantizeSplitTiles(state_, x, tiles_, weight_.cols, k_, group, layout.stride_bytes,
                         is_symmetric, entries, values, left);
    } else if (kernel_.tile == nullptr) {
      Quantize(state_, x, rows_, weight_.cols, layout.stride_bytes, entries, values);
    } else {
      QuantizeTiles(state_, x, tiles_, weight_.cols, k_, group, layout.stride_bytes, is_symmetric,
                    entries, values);
    }
    quantized_ = entries;
    a_ = values;
    a_stride_bytes_ = layout.stride_bytes;
  }

  const QuantizedRow* QuantizedAt(uint32_t row) const {
    return quantized_ == nullptr ? nullptr : quantized_ + row;
  }

  // Uses our own kernels.
  void MultiplyTiles(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride) const {
    TileArgs tile = {};
    tile.k = k_;
    tile.accumulate = accumulate;
    tile.panels = panels_ + begin * panel_bytes_;
    tile.dtype = weight_.dtype;
    tile.n = Columns(begin, end);
    tile.c_stride = c_stride;
    for (uint32_t t = 0; t < tiles_.count(); ++t) {
      const uint32_t first = tiles_.First(t);
      tile.rows = tiles_.First(t + 1) - first;
      tile.a = a_ + first * a_stride_bytes_;
      tile.quantized = QuantizedAt(first);
      tile.c = c + first * c_stride;
      kernel_.tile(tile);
    }
  }

  // Split rows: multiplies both halves of a few rows at a time, so that their weights are read
  // once, in blocks that fit on the stack.
  void MultiplySplit(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride) const {
    float sums[kMaxTileRows * kSumColumns];
    const size_t step = Max<size_t>(1, kSumColumns / nr());
    for (uint32_t t = 0; t < tiles_.count(); ++t) {
      const uint32_t first = tiles_.First(t), n_rows = tiles_.First(t + 1) - first;
      for (size_t panel = begin; panel < end; panel += step) {
        const size_t last = Min(panel + step, end);
        const uint32_t n = Columns(panel, last);
        MultiplyHalves(first, n_rows, panel, last, sums);
        float* to = c + first * c_stride + (panel - begin) * nr();
        for (uint32_t r = 0; r < n_rows; ++r, to += c_stride) {
          const float* high = sums + size_t{2 * r} * n;
          const float* low = high + n;
          for (uint32_t i = 0; i < n; ++i) {
            const float sum = 0.5f * (high[i] + low[i]);
            to[i] = accumulate ? to[i] + sum : sum;
          }
        }
      }
    }
  }
  // sums: [2 n_rows, Columns(begin, end)].
  void MultiplyHalves(uint32_t first, uint32_t n_rows, size_t begin, size_t end,
                      float* sums) const {
    const uint32_t n = Columns(begin, end);
    if (kernel_.tile == nullptr) {
      // The entries after these rows belong to other rows, so they are copied and the last is
      // repeated.
      QuantizedRow entries[kMaxTileRows + kExtraQuantizedRows];
      for (uint32_t i = 0; i < kMaxTileRows + kExtraQuantizedRows; ++i) {
        entries[i] = quantized_[2 * first + Min(i, 2 * n_rows - 1)];
      }
      return MultiplyPanels(2 * first, 2 * n_rows, entries, begin, end, sums, n);
    }
    TileArgs tile = {};
    tile.k = k_;
    tile.panels = panels_ + begin * panel_bytes_;
    tile.dtype = weight_.dtype;
    tile.n = n;
    tile.c_stride = n;
    tile.rows = 2 * n_rows;
    tile.a = a_ + uint64_t{2 * first} * a_stride_bytes_;
    tile.quantized = QuantizedAt(2 * first);
    tile.c = sums;
    kernel_.tile(tile);
  }

  // Uses XNNPACK's kernels on n rows.
  void MultiplyPanels(uint32_t row, uint32_t n, const QuantizedRow* quantized, size_t begin,
                      size_t end, float* c, size_t c_stride) const {
    GemmArgs args = {};
    args.rows = n;
    args.n = Columns(begin, end);
    args.k = k_;
    args.a = a_ + row * a_stride_bytes_;
    args.a_stride_bytes = a_stride_bytes_;
    args.quantized = quantized;
    args.panels = panels_ + begin * panel_bytes_;
    args.c = c;
    args.c_stride_bytes = c_stride * sizeof(float);
    Gemm(kernel_, weight_.dtype, args);
  }

  // XNNPACK's kernels do not accumulate: computes blocks on the stack and adds them.
  void AddPanels(size_t begin, size_t end, float* c, size_t c_stride) const {
    float sums[kMaxTileRows * kSumColumns];
    const size_t step = Max<size_t>(1, kSumColumns / nr());
    for (uint32_t row = 0; row < rows_; row += kernel_.tile_rows) {
      const uint32_t n_rows = Min(kernel_.tile_rows, rows_ - row);
      for (size_t panel = begin; panel < end; panel += step) {
        const size_t last = Min(panel + step, end);
        const uint32_t n = Columns(panel, last);
        MultiplyPanels(row, n_rows, QuantizedAt(row), panel, last, sums, n);
        float* to = c + row * c_stride + (panel - begin) * nr();
        for (uint32_t r = 0; r < n_rows; ++r) {
          state_.simd.add_row(sums + size_t{r} * n, n, to + r * c_stride);
        }
      }
    }
  }

  const State& state_;
  const Weight& weight_;
  const GemmKernel& kernel_;
  const std::byte* panels_;
  uint64_t panel_bytes_ = 0;
  const bool is_split_;
  const RowTiles tiles_;
  const uint32_t rows_;
  uint32_t k_;
  const std::byte* a_ = nullptr;
  uint64_t a_stride_bytes_ = 0;
  const QuantizedRow* quantized_ = nullptr;
};

// values[Columns(begin, end)] = x W^T + bias, of one row. Not inlined: two functions share it,
// which call it for many columns at a time.
[[gnu::noinline]] void MultiplyBlock(const PanelMatmul& matmul, size_t begin, size_t end,
                                     float* values) {
  matmul.Multiply(begin, end, /*accumulate=*/false, values, matmul.Columns(begin, end));
}

// Returns a key that orders columns for argmax: larger values first, the lower column on ties. 0
// for NaN.
uint64_t Rank(float value, uint32_t column) {
  if (std::isnan(value)) return 0;
  value += 0.0f;  // -0 becomes 0
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr uint32_t kSign = 1u << 31;
  const uint32_t ordered = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return uint64_t{ordered} << 32 | (UINT32_MAX - column);
}

}  // namespace

void RequestPrefetch(const State& state, Span<const Step> steps) {
  for (const Step& step : steps) {
    if (step.op() != Op::kLinear && step.op() != Op::kLogits) continue;
    const WeightId id = OperandsOf(step).first_matrix;
    const Weight& weight = state.program->weights[id];
    uint64_t panel_bytes = 0;
    const GemmKernel& kernel = *state.gemm.For(weight.dtype);
    (void)PackedBytes(weight.dtype, kernel.layout, kernel.layout.nr, weight.cols, &panel_bytes);
    return state.threads.SetPrefetch(state.matrices[id],
                                     CeilDiv(weight.rows, kernel.layout.nr) * panel_bytes);
  }
  state.threads.SetPrefetch(nullptr, 0);
}

QuantizedTile QuantizedInput::Tile(uint32_t i) const {
  const auto first = [&](uint64_t tile) { return static_cast<uint32_t>(tile * n_rows / n_tiles); };
  QuantizedTile tile;
  tile.first_row = first(i);
  tile.n_rows = first(i + 1) - tile.first_row;
  const uint32_t at = is_split ? 2 * tile.first_row : tile.first_row;
  const uint32_t height = is_split ? 2 * tile.n_rows : tile.n_rows;
  tile.values = values + at * stride_bytes;
  tile.rows = rows + at;
  tile.row_stride = group == 0 ? stride_bytes : group;
  tile.second = group == 4 ? size_t{height} * 4 : 4;
  tile.pair_stride = group == 0 ? kLowRankInputs : size_t{height} * kLowRankInputs;
  return tile;
}

QuantizedInput QuantizeInput(const State& state, WeightId id, const float* x, uint32_t rows) {
  return PanelMatmul(state, id, x, rows).Input();
}

void Matmul(const State& state, WeightId id, const float* x, uint32_t rows, bool accumulate,
            float* out, const AroundMatmul& around) {
  if (rows == 0) return;
  const PanelMatmul matmul(state, id, x, rows);
  if (around.begin != nullptr) around.begin(around.context, matmul.Input());
  const uint32_t width = state.program->weights[id].rows;
  matmul.ForPanels([&](size_t begin, size_t end) {
    const auto first = static_cast<uint32_t>(begin * matmul.nr());
    const uint32_t n = matmul.Columns(begin, end);
    if (around.before != nullptr) around.before(around.context, first, n);
    matmul.Multiply(begin, end, accumulate, out + first, width);
    if (around.after != nullptr) around.after(around.context, first, n);
  });
}

void MatmulParts(const State& state, WeightId id, const float* x, const float* parts,
                 uint32_t n_parts, uint32_t size, float* out) {
  const PanelMatmul matmul(state, id, x, 1);
  const uint32_t nr = matmul.nr();
  const size_t step = Max<size_t>(1, kBestColumns / nr);
  state.threads.ForTiles(n_parts, 1, [&](size_t begin, size_t end) {
    float values[kBestColumns];
    for (size_t i = begin; i < end && !IsCut(state); ++i) {
      const auto first = static_cast<uint32_t>(parts[i]) * size, last = first + size;
      for (size_t panel = first / nr; panel * nr < last; panel += step) {
        const size_t next = Min<size_t>(panel + step, CeilDiv(last, nr));
        const auto column = static_cast<uint32_t>(panel * nr);
        const uint32_t n = matmul.Columns(panel, next);
        MultiplyBlock(matmul, panel, next, values);
        const uint32_t from = Max(first, column), to = Min(last, column + n);
        std::memcpy(out + from, values + (from - column), (to - from) * sizeof(float));
      }
    }
  });
}

uint32_t BestColumn(const State& state, WeightId id, const float* x, float factor, float softcap) {
  const PanelMatmul matmul(state, id, x, 1);
  const LogitsOps& ops = *CpuLogitsOps();
  const bool is_scaled = factor != 1.0f || softcap != 0.0f;
  const size_t step = Max<size_t>(1, kBestColumns / matmul.nr());
  std::atomic<uint64_t> best{0};
  matmul.ForPanels([&](size_t begin, size_t end) {
    float values[kBestColumns];
    uint64_t found = 0;
    for (size_t panel = begin; panel < end; panel += step) {
      const size_t last = Min(panel + step, end);
      const uint32_t n = matmul.Columns(panel, last);
      MultiplyBlock(matmul, panel, last, values);
      if (is_scaled) state.simd.softcap(values, n, factor, softcap);
      const uint32_t at = ops.argmax(values, n);
      found = Max(found, Rank(values[at], static_cast<uint32_t>(panel * matmul.nr()) + at));
    }
    uint64_t seen = best.load(std::memory_order_relaxed);
    while (found > seen && !best.compare_exchange_weak(seen, found, std::memory_order_relaxed)) {
    }
  });
  const uint64_t rank = best.load(std::memory_order_relaxed);
  return rank == 0 ? 0 : UINT32_MAX - static_cast<uint32_t>(rank);
}

}  // namespace arn::cpu
