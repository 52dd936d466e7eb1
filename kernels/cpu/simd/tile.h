// Our own matmul kernels, where XNNPACK has none or is slow: a tile of rows times panels.
//
// The rows of a tile are interleaved, so a kernel reads them sequentially through one pointer: for
// each column, or group of columns, row after row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/adapter.h"
#include "kernels/contract/weight.h"

namespace arn::cpu {

// Bytes of weights that kernels of few rows prefetch ahead, into L2: between their products the
// hardware's prefetcher does not keep up with the memory.
inline constexpr size_t kWeightsAhead = 8192;

// Quantisation parameters of an activation row: x ~ (values - zero_point) * scale.
struct QuantizedRow {
  int32_t zero_point;
  float scale;
};

// Up to kRankChunk ranks of a row as integers, with zeros up to a multiple of kLowRankInputs,
// behind which the memory may end.
struct RoundedRanks {
  float scale;
  int32_t offset;  // -128 times the sum of the integers, for weights that are offset by 128
  int8_t values[kRankChunk];
};
// RoundedRanks of several rows; the chunks of a row follow one another.
struct RankRows {
  const std::byte* first;  // null: they are not rounded
  size_t stride;           // bytes from row to row

  // The first chunk of a row.
  const RoundedRanks& At(size_t row) const {
    return *reinterpret_cast<const RoundedRanks*>(first + row * stride);
  }
};

// The B of a low-rank change in int8 or int4, from the tile's first column on, in panels of as many
// columns as the tile's: c += B ranks, with the bits of LowRankIntegerKernels::b.
struct TileChange {
  DType dtype = DType::kInt8;
  const std::byte* panels = nullptr;  // null: no change
  uint64_t panel_bytes = 0;
  const float* scales = nullptr;  // of the panels
  RankRows ranks = {};            // of the tile's rows
  uint32_t n_ranks = 0;           // a multiple of kLowRankInputs
  // Memory that is read after the tile: a little of it is prefetched with each panel, because a
  // burst would be waited for.
  const std::byte* next = nullptr;
  uint32_t next_bytes = 0;  // with each panel
};

// The rows of a matrix of order kDeviceRows (kernels/pack/device_rows.h) from a tile's first column
// on, and the distance of the activation rows. blocks: int4 alone.
struct DeviceRowsAt {
  const std::byte *values = nullptr, *heads = nullptr, *blocks = nullptr;
  size_t row_bytes = 0, block_row_bytes = 0;
  size_t a_row_bytes = 0;
};

// c[rows, n] (+)= a[rows, k] W^T + bias for n columns that start at a panel.
struct TileArgs {
  // kF16, kBf16: f32 [k][rows]. Integers: u8 [k / kr][rows][kr], each the quantised integer
  // plus 128; k is PaddedInputs(). With HasMinimums(dtype) i16 [blocks / 2, rounded up][rows][2]
  // follow: the sums of the integers of blocks of columns minus their zero points.
  const void* a;
  const QuantizedRow* quantized;  // [rows]; null for float weights
  uint32_t rows, n, k;
  bool accumulate;
  const std::byte* panels;
  DeviceRowsAt in_rows;  // instead of panels, if the layout is in device rows
  DType dtype;           // of the weights
  float* c;
  size_t c_stride;           // in elements
  const TileChange* change;  // if TileKernel::adds_changes; or null
};
// Takes 1 to TileKernel::rows rows. A row's result does not depend on the other rows.
using TileFn = void (*)(const TileArgs& args);

// False where no kernel does TileKernel::adds_changes, so that what would use it is left out.
#ifdef __x86_64__
inline constexpr bool kAddsChanges = kHasAdapters;
#else
inline constexpr bool kAddsChanges = false;
#endif

// True if a backend with a device is built, whose weights CPU kernels may share.
#ifdef ARN_HAS_DEVICE_ROWS
inline constexpr bool kHasDeviceRows = true;
#else
inline constexpr bool kHasDeviceRows = false;
#endif

struct TileKernel {
  WeightLayout layout;  // layout it reads
  uint32_t rows = 0;    // maximum rows per call; 0: no kernel on this CPU
  TileFn run = nullptr;
  bool adds_changes = false;  // TileArgs::change
};

TileKernel ChooseF16Tile();
TileKernel ChooseBf16Tile();
// For DType::kInt4 or kInt8. May return no kernel (rows 0).
TileKernel ChooseIntegerTile(DType dtype);
// For a type of codes. Defined if kHasLowBits.
TileKernel ChooseCodeTile(DType dtype);
// For matrices of order kDeviceRows: takes rows as they are, not interleaved. No kernel for types
// of codes. Defined if kHasDeviceRows.
TileKernel ChooseRowsTile(DType dtype);

}  // namespace arn::cpu
