// Layout of one panel of a kPanels matrix, but for types of codes (code_panel.h). Private to
// kernels/pack/.
//
// A panel holds nr consecutive output rows. Panels are contiguous:
//   f32, f16, bf16
//          bias f32[nr], then values [nr * k] of the type
//   int8   negated row sums i32[nr], values i8[nr * k], scales f32[nr], bias f32[nr]
//   int4   negated row sums times their scales f32[nr],
//          per block of 32: values u8[nr * 16], scales / 16 as bf16[nr];
//          bias f32[nr]
// with k = cols rounded up to kr * sr (int4: to a block). Values are ordered in chunks of kr along
// k, chunk by chunk, and inside a chunk row by row. With sr > 1, row r starts each run of sr chunks
// r chunks later and wraps around. int4 stores chunks in pairs: byte i has element i of the first
// chunk in its low nibble and of the second in its high nibble, both as two's complement (value XOR
// 8). Formats: xnn_pack_f32_gemm_goi_w, xnn_pack_qs8_gemm_goi_w, xnn_pack_qs8_qb4w_gemm_goi_w in
// XNNPACK's src/reference/packing.cc, with input_zero_point 1.
#pragma once

#include <cstdint>

#include "kernels/contract/weight.h"
#include "platform/base/arith.h"

namespace arn {

struct PanelShape {
  uint32_t nr, kr, sr;
  uint64_t k;              // padded columns
  uint64_t values_offset;  // bytes from the start of the panel
  uint64_t scales_offset;  // int8
  uint64_t bias_offset;
  uint64_t block_bytes;  // int4: stride between blocks
  uint64_t bytes;        // size of the panel

  // Returns the first column stored in chunk `chunk` (counted along k) of the panel's row `row`.
  uint64_t ChunkColumn(uint64_t chunk, uint32_t row) const {
    const uint64_t run = uint64_t{kr} * sr;
    const uint64_t at = chunk * kr;
    return (at & ~(run - 1)) + ((at + uint64_t{row} * kr) & (run - 1));
  }
};

// REQUIRES: PackedBytes has accepted the combination.
inline PanelShape ShapeOfPanel(DType dtype, const WeightLayout& layout, uint32_t cols) {
  PanelShape p = {};
  p.nr = layout.nr;
  p.kr = layout.kr;
  p.sr = layout.sr;
  const uint64_t nr = p.nr;
  if (!IsInteger(dtype)) {
    p.k = AlignUp(cols, uint64_t{p.kr} * p.sr);
    p.values_offset = nr * sizeof(float);
    p.bytes = p.values_offset + nr * p.k * ElementBytes(dtype);
  } else if (dtype == DType::kInt8) {
    p.k = AlignUp(cols, uint64_t{p.kr} * p.sr);
    p.values_offset = nr * sizeof(int32_t);
    p.scales_offset = p.values_offset + nr * p.k;
    p.bias_offset = p.scales_offset + nr * sizeof(float);
    p.bytes = p.bias_offset + nr * sizeof(float);
  } else {
    p.k = AlignUp(cols, kInt4BlockSize);
    p.values_offset = nr * sizeof(float);
    p.block_bytes = nr * (kInt4BlockSize / 2 + sizeof(uint16_t));
    p.bias_offset = p.values_offset + p.k / kInt4BlockSize * p.block_bytes;
    p.bytes = p.bias_offset + nr * sizeof(float);
  }
  return p;
}

}  // namespace arn
