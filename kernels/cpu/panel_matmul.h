// Multiplies the rows of a run by one matrix: the loops around the micro-kernels.
//
// The outputs are cut into tiles of whole panels. A tile's panels stay in the L2 cache while all
// rows use them, so each run reads the weights from memory once, for any number of rows. XNNPACK's
// own operators do not do this at the pinned commit. Threads share the tiles. No sum is split
// between tiles, so results do not depend on the tiling.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_plan.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/cpu/xnn/gemm.h"
#include "platform/base/arith.h"

namespace arn::cpu {

// Returns the panels per tile, given the bytes per panel.
size_t TilePanels(const State& state, uint64_t panels, uint64_t panel_bytes);
// Returns the bytes of the panels of `weight`, or of the values of as many of its rows.
uint64_t PanelBytes(const GemmKernel& kernel, const Weight& weight);

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
              const QuantizedLayout& layout);
  // Converts all rows.
  PanelMatmul(const State& state, WeightId id, const float* x, uint32_t rows);

  const RowTiles& tiles() const { return tiles_; }
  uint64_t panel_bytes() const { return panel_bytes_; }
  uint64_t n_panels() const { return CeilDiv(weight_.rows, nr()); }
  // False: the kernel reads x in place.
  bool Converts() const { return a_ != nullptr; }
  // Converts a tile of rows to the kernel's format.
  void Convert(size_t tile) const;

  uint32_t nr() const { return kernel_.columns(); }

  // Returns the converted rows, which an adapter's A multiplies too.
  QuantizedInput Input() const;

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
                                  size_t c_stride, const TileChange* change = nullptr) const;

 private:
  uint32_t group() const { return kernel_.tile == nullptr ? 1 : kernel_.group(); }
  // A single row of floats is read in place.
  bool IsInterleaved() const { return kernel_.tile != nullptr && !kernel_.IsInRows() && rows_ > 1; }

  // Quantises rows [first, first + n), with split rows each followed by its residual, in the format
  // of the kernel: whole rows, or a tile of them in groups (TileArgs).
  void Quantize(uint32_t first, uint32_t n, const float* from) const;

  // Where the kernel reads a row, or the tile that it begins.
  const std::byte* RowAt(uint64_t row) const {
    const auto* from = Converts() ? a_ : reinterpret_cast<const std::byte*>(x_);
    return from + row * a_stride_bytes_;
  }
  const QuantizedRow* QuantizedAt(uint32_t row) const {
    return quantized_ == nullptr ? nullptr : quantized_ + row;
  }

  // Returns where a kernel that reads rows in place finds those of the panels from `panel` on.
  DeviceRowsAt RowsFrom(size_t panel) const;

  // Uses our own kernels.
  void MultiplyTiles(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride,
                     const TileChange* change) const;

  // Split rows: multiplies both halves of a few rows at a time, so that their weights are read
  // once, in blocks that fit on the stack.
  void MultiplySplit(size_t begin, size_t end, bool accumulate, float* c, size_t c_stride) const;
  // sums: [2 n_rows, Columns(begin, end)].
  void MultiplyHalves(uint32_t first, uint32_t n_rows, size_t begin, size_t end, float* sums) const;

  // Uses XNNPACK's kernels on n rows.
  void MultiplyPanels(uint32_t row, uint32_t n, const QuantizedRow* quantized, size_t begin,
                      size_t end, float* c, size_t c_stride) const;

  // XNNPACK's kernels do not accumulate: computes blocks on the stack and adds them.
  void AddPanels(size_t begin, size_t end, float* c, size_t c_stride) const;

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

}  // namespace arn::cpu
