// Our own matmul kernels, where XNNPACK has none or is slow: a tile of rows times panels.
//
// The rows of a tile are interleaved, so a kernel reads them sequentially through one pointer: for
// each column, or group of columns, row after row.
#pragma once

#include <cstddef>
#include <cstdint>

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

// c[rows, n] (+)= a[rows, k] W^T + bias for n columns that start at a panel.
struct TileArgs {
  // kF16, kBf16: f32 [k][rows]. Integers: u8 [k / kr][rows][kr], each the quantised integer
  // plus 128; k is PaddedInputs().
  const void* a;
  const QuantizedRow* quantized;  // [rows]; null for float weights
  uint32_t rows, n, k;
  bool accumulate;
  const std::byte* panels;
  DType dtype;  // of the weights
  float* c;
  size_t c_stride;  // in elements
};
// Takes 1 to TileKernel::rows rows. A row's result does not depend on the other rows.
using TileFn = void (*)(const TileArgs& args);

struct TileKernel {
  WeightLayout layout;  // layout it reads
  uint32_t rows = 0;    // maximum rows per call; 0: no kernel on this CPU
  TileFn run = nullptr;
};

TileKernel ChooseF16Tile();
TileKernel ChooseBf16Tile();
// May return no kernel (rows 0).
TileKernel ChooseInt4Tile();
TileKernel ChooseInt8Tile();
// For a type of codes. Defined if kHasLowBits.
TileKernel ChooseCodeTile(DType dtype);

}  // namespace arn::cpu
