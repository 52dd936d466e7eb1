// Weight: one matrix or vector of a model. (dtype, layout, rows, cols) determine its bytes;
// kernels/pack/ defines the byte order of every layout and converts between them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/dtype.h"

namespace arn {

// Byte order of a matrix. Stored in bundles: append only.
enum class WeightOrder : uint8_t {
  kRows = 0,    // row-major, readable by every backend (RowsBlob in kernels/pack/pack.h)
  kPanels = 1,  // panels of nr output rows, kr * sr interleaved, as XNNPACK's GEMM micro-kernels
                // read them
  kDeviceRows = 2,  // row-major, as a GPU reads them in place (kernels/pack/device_rows.h)
};
inline constexpr uint32_t kWeightOrderCount = 3;

// nr, kr, sr and planes are the micro-kernel's tile parameters; all are 0 for the other orders.
// `planes` (int4 only: 1 or 2) identifies a micro-kernel together with the others; with blocks of
// 32 it does not affect the bytes.
struct WeightLayout {
  WeightOrder order = WeightOrder::kRows;
  uint8_t nr = 0;
  uint8_t kr = 0;
  uint8_t sr = 0;
  uint8_t planes = 0;
};
constexpr bool operator==(const WeightLayout& a, const WeightLayout& b) {
  return a.order == b.order && a.nr == b.nr && a.kr == b.kr && a.sr == b.sr && a.planes == b.planes;
}

// int4: number of input elements that share one scale. Packing pads `cols` to a multiple of it.
inline constexpr uint32_t kInt4BlockSize = 32;

// y[rows] = W[rows, cols] x[cols] + bias[rows]. The bias is part of the packed bytes (zeros if the
// model has none). A vector (e.g. a norm's weight) has rows = 1, dtype kF32, order kRows and no
// bias.
struct Weight {
  DType dtype = DType::kF32;
  WeightLayout layout;
  bool is_vector = false;
  uint32_t rows = 0;                // output features
  uint32_t cols = 0;                // input features
  const std::byte* data = nullptr;  // 64-byte aligned, followed by kOverreadBytes readable bytes
  uint64_t bytes = 0;
};

}  // namespace arn
