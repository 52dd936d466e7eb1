// Weight: one matrix or vector of a model, as kernels see it. The bytes are described fully by
// (dtype, layout, rows, cols): kernels/pack/ owns the byte order of every layout and converts
// between them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/dtype.h"

namespace arn {

// How the bytes of a matrix are ordered. Stored in bundles: append only.
enum class WeightOrder : uint8_t {
  kRows = 0,    // row-major, readable by every backend (RowsBlob in kernels/pack/pack.h)
  kPanels = 1,  // panels of nr output rows, kr * sr interleaved, as XNNPACK's GEMM micro-kernels
                // read them
};
inline constexpr uint32_t kWeightOrderCount = 2;

// nr, kr, sr and planes are the micro-kernel's tile parameters; all are 0 when order is kRows.
// `planes` (int4 only: 1 or 2) is kept because it belongs to the name of a micro-kernel; with
// blocks of 32 it does not change the bytes.
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

// int4 weights: input elements that share one scale. `cols` is padded to a multiple of it when
// packed.
inline constexpr uint32_t kInt4BlockSize = 32;

// y[rows] = W[rows, cols] x[cols] + bias[rows]. The bias lies inside the packed bytes (zeros when
// the model has none). A vector (a norm's weight) is rows = 1, dtype kF32, order kRows, without
// bias.
struct Weight {
  DType dtype = DType::kF32;
  WeightLayout layout;
  bool is_vector = false;
  uint32_t rows = 0;                // output features
  uint32_t cols = 0;                // input features
  const std::byte* data = nullptr;  // 64-byte aligned; kOverreadBytes readable behind it
  uint64_t bytes = 0;
};

}  // namespace arn
