// Packing: from row-major source matrices to the bytes that kernels read, and back, one row at a
// time. Shared by the converter (which packs for a --target that need not be the machine it runs
// on) and by the CPU backend (which repacks when a bundle was packed for another CPU). Portable
// scalar code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Packed bytes change when XNNPACK's packed formats or ours do; bundles record it.
inline constexpr uint32_t kPackVersion = 1;

// Targets that bundles can be packed for. Stored in bundles by name.
struct PackTarget {
  const char* name;  // "portable", "x86-avx2", "x86-avx512vnni", "arm64-neon", "arm64-dotprod", ...
  WeightLayout f32, f16, bf16, int8, int4;
};
Span<const PackTarget> PackTargets();
// Null when there is none of that name.
const PackTarget* FindPackTarget(const char* name);
// The layout that `target` gives a matrix of `dtype`.
WeightLayout TargetLayout(const PackTarget& target, DType dtype);

// Exact bytes of a packed matrix. False when (dtype, layout, rows, cols) is not a combination that
// exists (used to validate bundles) or the size overflows.
[[nodiscard]] bool PackedBytes(DType dtype, const WeightLayout& layout, uint32_t rows,
                               uint32_t cols, uint64_t* bytes);

// Where the parts of a kRows matrix lie. scales and bias start 64-byte aligned.
struct RowsBlobLayout {
  uint64_t values_offset = 0, row_bytes = 0;        // rows * row_bytes
  uint64_t scales_offset = 0, scale_row_bytes = 0;  // rows * scale_row_bytes (0 for floats)
  uint64_t bias_offset = 0;                         // f32 [rows]
  uint64_t bytes = 0;
};
// The caller has checked with PackedBytes that the size does not overflow.
RowsBlobLayout RowsBlob(DType dtype, uint32_t rows, uint32_t cols);

// A source matrix, row-major, already in its final element type.
struct RowMatrix {
  DType dtype = DType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  // kF32/kF16/kBf16: [rows, cols] elements. kInt8: int8 [rows, cols]. kInt4: one byte a value,
  // 0..15 (zero point 8), [rows, AlignUp(cols, 32)], padding 8.
  const void* values = nullptr;
  // kInt8: f32 [rows]. kInt4: bf16 [rows, AlignUp(cols, 32) / 32]. Else null.
  const void* scales = nullptr;
  const float* bias = nullptr;  // f32 [rows] or null (zeros)
};

// Packs a matrix, or a slab of its rows, into `out` (PackedBytes(dtype, layout, source.rows, cols)
// bytes). With kPanels, the packed slabs of consecutive rows, each a multiple of layout.nr but the
// last, laid one after another are the packed matrix: a large matrix can be packed as a stream.
void PackRows(const RowMatrix& source, const WeightLayout& layout, std::byte* out);

// Dequantised row `row` of a packed matrix: cols floats. For embeddings and the reference kernels.
void UnpackRowF32(const Weight& weight, uint32_t row, float* out);
float UnpackBias(const Weight& weight, uint32_t row);
// The elements of a kF16 or kBf16 row as they are (cols of them).
void UnpackRow16(const Weight& weight, uint32_t row, uint16_t* out);
// The integers of a kInt8 row (cols values) and its scale.
void UnpackRowInt8(const Weight& weight, uint32_t row, int8_t* out, float* scale);
// The values of a kInt4 row minus 8 (AlignUp(cols, 32) values) and its block scales.
void UnpackRowInt4(const Weight& weight, uint32_t row, int8_t* out, float* scales);

}  // namespace arn
