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
#include "kernels/pack/device_rows.h"
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
// Tasks that convert the rows of a part, at most, and rows that are worth one.
constexpr uint64_t kConvertTasks = 4, kRowsPerTask = 16;

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

// Returns the bytes of the panels of `weight`, or of the values of as many of its rows.
uint64_t PanelBytes(const GemmKernel& kernel, const Weight& weight) {
  if (kHasDeviceRows && kernel.IsInRows()) {
    return kernel.columns() * ShapeOfDeviceRows(weight.dtype, 1, weight.cols).row_bytes;
  }
  uint64_t bytes = 0;
  (void)PackedBytes(weight.dtype, kernel.layout, kernel.layout.nr, weight.cols, &bytes);
  return bytes;
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

// Writes the sums of the blocks of a tile of n rows behind its integers (TileArgs::a).
void SumBlocks(const QuantizedRow* rows, uint32_t n, uint32_t k, uint32_t block_cols,
               std::byte* tile) {
  constexpr uint32_t kEven = 0x00FF00FF;
  const std::byte* from = tile;
  const uint32_t n_blocks = k / block_cols;
  auto* out = reinterpret_cast<int16_t*>(tile + uint64_t{n} * k);
  if (n_blocks % 2 != 0) std::memset(out + uint64_t{n_blocks - 1} * n, 0, 4 * uint64_t{n});
  for (uint32_t block = 0; block < n_blocks; ++block, from += uint64_t{n} * block_cols) {
    for (uint32_t r = 0; r < n; ++r) {
      uint32_t even = 0, odd = 0;
      for (uint32_t quad = 0; quad < block_cols / 4; ++quad) {
        uint32_t bytes;
        std::memcpy(&bytes, from + (uint64_t{quad} * n + r) * 4, sizeof bytes);
        even += bytes & kEven;
        odd += bytes >> 8 & kEven;
      }
      even += odd;  // at most 4080 in each half
      const auto sum = static_cast<int32_t>((even & 0xFFFF) + (even >> 16));
      out[(uint64_t{block / 2} * n + r) * 2 + block % 2] =
          static_cast<int16_t>(sum - static_cast<int32_t>(block_cols) * (rows[r].zero_point + 128));
    }
  }
}

// Row tiles: our own kernels read a tile of rows interleaved. Rows are distributed evenly, so that
// no tile is much smaller than the others.
class RowTiles {
 public:
  RowTiles(uint32_t rows, uint32_t most)
      : rows_(rows), count_(static_cast<uint32_t>(CeilDiv(rows, most))) {}
  uint32_t count() const { return count_; }
  uint32_t First(uint64_t tile) const { return static_cast<uint32_t>(tile * rows_ / count_); }

 private:
  uint32_t rows_, count_;
};

// x W^T + bias, with the rows of x converted to the kernel's format.
class PanelMatmul {
 public:
  // x: all rows of the input. Convert() has to follow, for all tiles; only `layout` is written
  // then.
  PanelMatmul(const State& state, const MatrixRows& part, const float* x,
              const QuantizedLayout& layout)
      : state_(state),
        weight_(state.program->weights[part.weight]),
        kernel_(*state.gemm.For(weight_)),
        panels_(state.matrices[part.weight]),
        is_split_(state.program->splits_rows && IsInteger(weight_.dtype)),
        tiles_(part.n_rows, is_split_ ? Max(kernel_.tile_rows / 2, 1u) : kernel_.tile_rows),
        rows_(part.n_rows),
        k_(weight_.cols),
        x_(x + uint64_t{part.first_in} * weight_.cols) {
    panel_bytes_ = PanelBytes(kernel_, weight_);
    const uint64_t first = is_split_ ? 2 * uint64_t{part.first_in} : part.first_in;
    if (IsInteger(weight_.dtype)) {
      quantized_ = reinterpret_cast<QuantizedRow*>(state_.quantized) + first +
                   uint64_t{part.index} * kExtraQuantizedRows;
      if (is_split_) {
        left_ = reinterpret_cast<float*>(state_.quantized + layout.left_offset) +
                uint64_t{part.first_in} * weight_.cols;
      }
      a_stride_bytes_ = layout.stride_bytes;
      a_ = state_.quantized + layout.rows_offset + first * a_stride_bytes_;
      k_ = static_cast<uint32_t>(PaddedInputs(weight_.dtype, weight_.cols, group()));
      return;
    }
    a_stride_bytes_ = weight_.cols * sizeof(float);
    if (IsInterleaved()) a_ = state_.quantized + first * a_stride_bytes_;
  }
  // Converts all rows.
  PanelMatmul(const State& state, WeightId id, const float* x, uint32_t rows)
      : PanelMatmul(state, {id, 0, 0, 0, rows}, x,
                    QuantizedRows(HasMinimums(state.program->weights[id].dtype), rows,
                                  state.program->weights[id].cols, state.program->splits_rows)) {
    if (!Converts()) return;
    state.threads.ForTiles(tiles_.count(), 1, [&](size_t tile, size_t) { Convert(tile); });
  }

  const RowTiles& tiles() const { return tiles_; }
  uint64_t panel_bytes() const { return panel_bytes_; }
  uint64_t n_panels() const { return CeilDiv(weight_.rows, nr()); }
  // False: the kernel reads x in place.
  bool Converts() const { return a_ != nullptr; }
  // Converts a tile of rows to the kernel's format.
  void Convert(size_t tile) const {
    const uint32_t first = tiles_.First(tile), height = tiles_.First(tile + 1) - first;
    const float* from = x_ + uint64_t{first} * weight_.cols;
    if (quantized_ != nullptr) return Quantize(first, height, from);
    auto* to = reinterpret_cast<float*>(a_) + uint64_t{first} * weight_.cols;
    for (uint32_t r = 0; r < height; ++r, from += weight_.cols) {
      for (uint32_t c = 0; c < weight_.cols; ++c) to[uint64_t{c} * height + r] = from[c];
    }
  }

  uint32_t nr() const { return kernel_.columns(); }

  QuantizedInput Input() const {
    if (quantized_ == nullptr) return {};
    QuantizedInput input;
    input.n_tiles = tiles_.count();
    input.n_rows = rows_;
    input.is_split = is_split_;
    input.is_offset = kernel_.tile != nullptr;
    input.group = kernel_.tile == nullptr ? 0 : group();
    input.rows = quantized_;
    input.values = a_;
    input.stride_bytes = a_stride_bytes_;
    return input;
  }

  // Calls body(begin, end) in parallel for panels [begin, end), until the step is cut.
  template <typename Body>
  void ForPanels(const Body& body) const {
    const uint64_t n = n_panels();
    state_.threads.ForTiles(n, TilePanels(state_, n, panel_bytes_), [&](size_t begin, size_t end) {
      if (!IsCut(state_)) body(begin, end);
    });
  }
  // Number of columns in panels [begin, end).
  uint32_t Columns(size_t begin, size_t end) const {
    return static_cast<uint32_t>(Min<uint64_t>(end * nr(), weight_.rows) - begin * nr());
  }

  const std::byte* Panels(size_t begin) const { return panels_ + begin * panel_bytes_; }

  // c[rows, Columns(begin, end)] (+)= x W^T + bias, plus the change; c_stride in elements. Not
  // inlined: several functions share it, which call it for many columns at a time.
  [[gnu::noinline]] void Multiply(size_t begin, size_t end, bool accumulate, float* c,
                                  size_t c_stride, const TileChange* change = nullptr) const {
    if (is_split_) return MultiplySplit(begin, end, accumulate, c, c_stride);
    if (kernel_.tile != nullptr) return MultiplyTiles(begin, end, accumulate, c, c_stride, change);
    if (accumulate) return AddPanels(begin, end, c, c_stride);
    MultiplyPanels(0, rows_, quantized_, begin, end, c, c_stride);
  }

 private:
  uint32_t group() const { return kernel_.tile == nullptr ? 1 : kernel_.group(); }
  // A single row of floats is read in place.
  bool IsInterleaved() const { return kernel_.tile != nullptr && !kernel_.IsInRows() && rows_ > 1; }

  // Quantises rows [first, first + n), with split rows each followed by its residual, in the format
  // of the kernel: whole rows, or a tile of them in groups (TileArgs).
  void Quantize(uint32_t first, uint32_t n, const float* from) const {
    constexpr uint8_t kFlip = 0x80;
    const bool has_tiles = kernel_.tile != nullptr;
    const bool in_rows = kHasDeviceRows && kernel_.IsInRows();
    const uint32_t each = is_split_ ? 2 : 1, height = in_rows ? 1 : each * n;
    const auto stride = static_cast<uint32_t>(a_stride_bytes_);
    const bool is_symmetric = TakesSymmetricRows(weight_.dtype);
    const auto quantize = [&](const float* x, std::byte* to) {
      return has_tiles
                 ? state_.simd.quantize_groups(x, weight_.cols, k_, group(), height * group(),
                                               is_symmetric, reinterpret_cast<uint8_t*>(to))
                 : state_.simd.quantize_row(x, weight_.cols, stride, reinterpret_cast<int8_t*>(to));
    };
    QuantizedRow* entry = quantized_ + each * first;
    std::byte* to = a_ + each * first * a_stride_bytes_;
    const uint64_t step = has_tiles && !in_rows ? group() : a_stride_bytes_;
    for (uint32_t r = 0; r < n; ++r, from += weight_.cols, entry += each, to += each * step) {
      entry[0] = quantize(from, to);
      if (!is_split_) continue;
      float* rest = left_ + uint64_t{first + r} * weight_.cols;
      LeftOver(from, weight_.cols, entry[0], to, has_tiles ? group() : weight_.cols,
               uint64_t{height} * group(), has_tiles ? kFlip : 0, rest);
      entry[1] = quantize(rest, to + step);
      JoinHalves(entry);
    }
    if (kHasLowBits && HasMinimums(weight_.dtype)) {
      SumBlocks(quantized_ + each * first, height, k_, FindCodeType(weight_.dtype)->block,
                a_ + each * first * a_stride_bytes_);
    }
    if (first + n != rows_) return;
    // XNNPACK's kernels compute a whole tile: missing rows alias the last row but read the entries
    // after it, so those repeat the last entry.
    for (uint32_t i = 0; i < kExtraQuantizedRows; ++i) entry[i] = entry[-1];
  }

  // Where the kernel reads a row, or the tile that it begins.
  const std::byte* RowAt(uint64_t row) const {
    const auto* from = Converts() ? a_ : reinterpret_cast<const std::byte*>(x_);
    return from + row * a_stride_bytes_;
  }
  const QuantizedRow* QuantizedAt(uint32_t row) const {
    return quantized_ == nullptr ? nullptr : quantized_ + row;
  }

  DeviceRowsAt RowsFrom(size_t panel) const {
    const DeviceRows shape = ShapeOfDeviceRows(weight_.dtype, weight_.rows, weight_.cols);
    const size_t row = panel * nr();
    return {panels_ + row * static_cast<size_t>(shape.row_bytes),
            panels_ + shape.heads_offset + row * kDeviceHeadBytes,
            panels_ + shape.blocks_offset + row * static_cast<size_t>(shape.block_row_bytes),
            static_cast<size_t>(shape.row_bytes),
            static_cast<size_t>(shape.block_row_bytes),
            static_cast<size_t>(a_stride_bytes_)};
  }

  // Uses our own kernels.
  void MultiplyTiles(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride,
                     const TileChange* change) const {
    TileArgs tile = {};
    TileChange of_rows;
    if (kAddsChanges && change != nullptr) {
      of_rows = *change;
      tile.change = &of_rows;
    }
    tile.k = k_;
    tile.accumulate = accumulate;
    tile.panels = Panels(begin);
    if (kHasDeviceRows && kernel_.IsInRows()) tile.in_rows = RowsFrom(begin);
    tile.dtype = weight_.dtype;
    tile.n = Columns(begin, end);
    tile.c_stride = c_stride;
    for (uint32_t t = 0; t < tiles_.count(); ++t) {
      const uint32_t first = tiles_.First(t);
      tile.rows = tiles_.First(t + 1) - first;
      tile.a = RowAt(first);
      tile.quantized = QuantizedAt(first);
      tile.c = c + first * c_stride;
      kernel_.tile(tile);
      of_rows.ranks.first += tile.rows * of_rows.ranks.stride;
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
    tile.panels = Panels(begin);
    tile.dtype = weight_.dtype;
    tile.n = n;
    tile.c_stride = n;
    tile.rows = 2 * n_rows;
    tile.a = RowAt(uint64_t{2 * first});
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
    args.a = RowAt(row);
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
  const float* x_;
  std::byte* a_ = nullptr;  // the converted rows; null: the kernel reads x_
  float* left_ = nullptr;   // residuals of split rows
  uint64_t a_stride_bytes_ = 0;
  QuantizedRow* quantized_ = nullptr;
};

// values[Columns(begin, end)] = x W^T + bias, of one row.
void MultiplyBlock(const PanelMatmul& matmul, size_t begin, size_t end, float* values) {
  matmul.Multiply(begin, end, /*accumulate=*/false, values, matmul.Columns(begin, end));
}

// The layout of the input of ConvertEach.
QuantizedLayout LayoutOfParts(const State& state, Span<const MatrixRows> parts) {
  const Program& program = *state.program;
  bool has_sums = false;
  for (const MatrixRows& part : parts) {
    has_sums = has_sums || HasMinimums(program.weights[part.weight].dtype);
  }
  return QuantizedRows(has_sums, program.max_rows, program.weights[parts[0].weight].cols,
                       program.splits_rows, kMaxMatrixRows);
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
    const GemmKernel& kernel = *state.gemm.For(weight);
    const uint64_t rows =
        kernel.IsInRows() ? weight.rows : AlignUp(weight.rows, uint64_t{kernel.columns()});
    return state.threads.SetPrefetch(state.matrices[id],
                                     rows * PanelBytes(kernel, weight) / kernel.columns());
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
    auto first = static_cast<uint32_t>(begin * matmul.nr());
    for (uint32_t left = matmul.Columns(begin, end), n = left; left > 0; left -= n, first += n) {
      TileChange change;
      n = left;
      const size_t panel = first / matmul.nr();
      if (around.before != nullptr) {
        n = around.before(around.context, matmul.Panels(panel), first, n, &change);
      }
      matmul.Multiply(panel, CeilDiv(first + n, matmul.nr()), accumulate, out + first, width,
                      change.panels == nullptr ? nullptr : &change);
      if (around.after != nullptr && change.panels == nullptr) {
        around.after(around.context, first, n);
      }
    }
  });
}

void ConvertEach(const State& state, Span<const MatrixRows> parts, const float* x,
                 const RowFill& fill) {
  const QuantizedLayout layout = LayoutOfParts(state, parts);
  uint64_t most = 0;
  for (const MatrixRows& part : parts) most = Max<uint64_t>(most, part.n_rows);
  // One task for each part that has few rows, and several for others.
  const size_t n = Min<size_t>(kConvertTasks, CeilDiv(most, kRowsPerTask));
  state.threads.ForEach(parts.size() * n, [&](size_t, size_t task) {
    const MatrixRows& part = parts[task / n];
    const PanelMatmul matmul(state, part, x, layout);
    const RowTiles& tiles = matmul.tiles();
    const size_t end = tiles.count() * (task % n + 1) / n;
    for (size_t tile = tiles.count() * (task % n) / n; tile < end; ++tile) {
      const uint32_t first = tiles.First(tile);
      fill.fill(fill.context, part.first_in + first, tiles.First(tile + 1) - first);
      if (matmul.Converts()) matmul.Convert(tile);
    }
  });
}

void MultiplyEach(const State& state, Span<const MatrixRows> parts, const float* x, float* out) {
  const QuantizedLayout layout = LayoutOfParts(state, parts);
  const PanelMatmul like(state, parts[0], x, layout);
  const uint64_t n_panels = like.n_panels(), width = state.program->weights[parts[0].weight].rows;
  const uint64_t most = TilePanels(state, n_panels * parts.size(), like.panel_bytes());
  const uint64_t n_tiles = CeilDiv(n_panels, most);
  state.threads.ForEach(parts.size() * n_tiles, [&](size_t, size_t task) {
    if (IsCut(state)) return;
    const size_t i = task / n_tiles, tile = task % n_tiles;
    const size_t begin = n_panels * tile / n_tiles, end = n_panels * (tile + 1) / n_tiles;
    if (tile + 1 == n_tiles && i + 1 < parts.size()) {
      // As kernels of few rows do within a matrix.
      const std::byte* next = state.matrices[parts[i + 1].weight];
      for (size_t at = 0; at < kWeightsAhead; at += 64) __builtin_prefetch(next + at, 0, 2);
    }
    const PanelMatmul matmul(state, parts[i], x, layout);
    matmul.Multiply(begin, end, /*accumulate=*/false,
                    out + parts[i].first_out * width + begin * matmul.nr(), width);
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
