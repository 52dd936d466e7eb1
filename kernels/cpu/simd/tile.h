// Matrix kernels of our own, where XNNPACK has none or is slow: a tile of rows times panels.
//
// The rows of a tile come interleaved, so that a kernel reads them through one pointer in the order
// in which it needs them: for each column, or group of columns, row after row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"

namespace arn::cpu {

// How a row of activations was quantised: x ~ (values - zero_point) * scale.
struct QuantizedRow {
  int32_t zero_point;
  float scale;
};

// c[rows, n] (+)= a[rows, k] W^T + bias for n columns that begin at a panel.
struct TileArgs {
  // kF16, kBf16: f32 [k][rows]. kInt4, kInt8: u8 [k / kr][rows][kr], each 128 more than the integer
  // that `quantized` speaks of; k is a multiple of kInt4BlockSize (kInt4) or kr (kInt8).
  const void* a;
  const QuantizedRow* quantized;  // [rows]; null for floats
  uint32_t rows, n, k;
  bool accumulate;
  const std::byte* panels;
  float* c;
  size_t c_stride;  // elements
};
// 1 to TileKernel::rows rows. Each row's result is the same with any others beside it.
using TileFn = void (*)(const TileArgs& args);

struct TileKernel {
  WeightLayout layout;  // that it reads
  uint32_t rows = 0;    // that one call takes at most; 0: there is no kernel on this CPU
  TileFn run = nullptr;
};

TileKernel ChooseF16Tile();
TileKernel ChooseBf16Tile();
// May be none.
TileKernel ChooseInt4Tile();
TileKernel ChooseInt8Tile();

}  // namespace arn::cpu
