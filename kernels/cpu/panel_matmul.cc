// Conversion of a matmul's rows, and the calls of the kernels on its panels.
#include "kernels/cpu/panel_matmul.h"

#include <cstring>

#include "kernels/contract/code_type.h"
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

}  // namespace

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

uint64_t PanelBytes(const GemmKernel& kernel, const Weight& weight) {
  if (kHasDeviceRows && kernel.IsInRows()) {
    return kernel.columns() * ShapeOfDeviceRows(weight.dtype, 1, weight.cols).row_bytes;
  }
  uint64_t bytes = 0;
  (void)PackedBytes(weight.dtype, kernel.layout, kernel.layout.nr, weight.cols, &bytes);
  return bytes;
}

PanelMatmul::PanelMatmul(const State& state, const MatrixRows& part, const float* x,
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

PanelMatmul::PanelMatmul(const State& state, WeightId id, const float* x, uint32_t rows)
    : PanelMatmul(state, {id, 0, 0, 0, rows}, x,
                  QuantizedRows(HasMinimums(state.program->weights[id].dtype), rows,
                                state.program->weights[id].cols, state.program->splits_rows)) {
  if (!Converts()) return;
  state.threads.ForTiles(tiles_.count(), 1, [&](size_t tile, size_t) { Convert(tile); });
}

void PanelMatmul::Convert(size_t tile) const {
  const uint32_t first = tiles_.First(tile), height = tiles_.First(tile + 1) - first;
  const float* from = x_ + uint64_t{first} * weight_.cols;
  if (quantized_ != nullptr) return Quantize(first, height, from);
  auto* to = reinterpret_cast<float*>(a_) + uint64_t{first} * weight_.cols;
  for (uint32_t r = 0; r < height; ++r, from += weight_.cols) {
    for (uint32_t c = 0; c < weight_.cols; ++c) to[uint64_t{c} * height + r] = from[c];
  }
}

QuantizedInput PanelMatmul::Input() const {
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

void PanelMatmul::Multiply(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride,
                           const TileChange* change) const {
  if (is_split_) return MultiplySplit(begin, end, accumulate, c, c_stride);
  if (kernel_.tile != nullptr) return MultiplyTiles(begin, end, accumulate, c, c_stride, change);
  if (accumulate) return AddPanels(begin, end, c, c_stride);
  MultiplyPanels(0, rows_, quantized_, begin, end, c, c_stride);
}

void PanelMatmul::Quantize(uint32_t first, uint32_t n, const float* from) const {
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

DeviceRowsAt PanelMatmul::RowsFrom(size_t panel) const {
  const DeviceRows shape = ShapeOfDeviceRows(weight_.dtype, weight_.rows, weight_.cols);
  const size_t row = panel * nr();
  return {panels_ + row * static_cast<size_t>(shape.row_bytes),
          panels_ + shape.heads_offset + row * kDeviceHeadBytes,
          panels_ + shape.blocks_offset + row * static_cast<size_t>(shape.block_row_bytes),
          static_cast<size_t>(shape.row_bytes),
          static_cast<size_t>(shape.block_row_bytes),
          static_cast<size_t>(a_stride_bytes_)};
}

void PanelMatmul::MultiplyTiles(size_t begin, size_t end, bool accumulate, float* c,
                                size_t c_stride, const TileChange* change) const {
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

void PanelMatmul::MultiplySplit(size_t begin, size_t end, bool accumulate, float* c,
                                size_t c_stride) const {
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

void PanelMatmul::MultiplyHalves(uint32_t first, uint32_t n_rows, size_t begin, size_t end,
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

void PanelMatmul::MultiplyPanels(uint32_t row, uint32_t n, const QuantizedRow* quantized,
                                 size_t begin, size_t end, float* c, size_t c_stride) const {
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

void PanelMatmul::AddPanels(size_t begin, size_t end, float* c, size_t c_stride) const {
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

}  // namespace arn::cpu
