// Packing: converts row-major matrices to the bytes the kernels read, and back one row at a time.
// Portable scalar code, used by the converter (which packs for a --target other than the host) and
// by the CPU backend (which repacks a bundle packed for another CPU or for a GPU).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/weight.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Recorded in bundles. Increment when the packed bytes change, by XNNPACK's packed formats or ours.
inline constexpr uint32_t kPackVersion = 1;

// Targets of packing: CPUs, and "vulkan". Stored in bundles by name.
struct PackTarget {
  const char* name;  // "portable", "x86-avx2", "x86-avx512vnni", "arm64-neon", "arm64-dotprod", ...
  WeightLayout f32, f16, bf16, int8, int4;  // types of codes have one layout for all targets
  // Tables of embeddings have the layout too, and segments begin at multiples of kDeviceAlign.
  bool is_device = false;
};
Span<const PackTarget> PackTargets();
// Returns null if no target has this name.
const PackTarget* FindPackTarget(const char* name);
// Returns the layout that `target` uses for a matrix of `dtype`.
WeightLayout TargetLayout(const PackTarget& target, DType dtype);

// Computes the exact size of a packed matrix. Returns false if the combination (dtype, layout,
// rows, cols) is invalid or the size overflows. Used to validate bundles.
[[nodiscard]] bool PackedBytes(DType dtype, const WeightLayout& layout, uint32_t rows,
                               uint32_t cols, uint64_t* bytes);

// Offsets of the parts of a kRows matrix. scales and bias are 64-byte aligned.
struct RowsBlobLayout {
  uint64_t values_offset = 0, row_bytes = 0;        // rows * row_bytes
  uint64_t scales_offset = 0, scale_row_bytes = 0;  // rows * scale_row_bytes (0 for floats)
  uint64_t bias_offset = 0;                         // f32 [rows]
  uint64_t bytes = 0;
};
// REQUIRES: PackedBytes has accepted the size.
RowsBlobLayout RowsBlob(DType dtype, uint32_t rows, uint32_t cols);

// An unpacked matrix: row-major, already in its final element type.
struct RowMatrix {
  DType dtype = DType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  // kF32/kF16/kBf16: [rows, cols] elements. kInt8: int8 [rows, cols]. kInt4: one byte per value,
  // 0..15 (zero point 8), [rows, AlignUp(cols, 32)], padded with 8. Codes: one byte per code,
  // [rows, CodeType::Padded(cols)].
  const void* values = nullptr;
  // kInt8: f32 [rows]. kInt4: bf16 [rows, AlignUp(cols, 32) / 32]. Codes: int16_t [rows,
  // CodeType::Entries(cols)], the bits or the value of what is stored. Else null.
  const void* scales = nullptr;
  const float* row_scales = nullptr;  // codes: [rows], 1 if scales are nested; else null
  const float* bias = nullptr;        // f32 [rows] or null (zeros)
};

// Packs a matrix, or a slab of its rows, into `out` (PackedBytes(dtype, layout, source.rows, cols)
// bytes; kDeviceRows: at a multiple of 4). With kPanels, the concatenated packed slabs of
// consecutive rows equal the packed matrix if every slab but the last has a multiple of layout.nr
// rows. Large matrices can thus be streamed.
void PackRows(const RowMatrix& source, const WeightLayout& layout, std::byte* out);
// The same for the layouts of CPUs: a library without a GPU's backend has no code for the others.
void PackCpuRows(const RowMatrix& source, const WeightLayout& layout, std::byte* out);

// Dequantises row `row` of a packed matrix into cols floats. For embeddings and the reference
// kernels.
void UnpackRowF32(const Weight& weight, uint32_t row, float* out);
float UnpackBias(const Weight& weight, uint32_t row);
// Reads the raw elements of a kF16 or kBf16 row (cols of them).
void UnpackRow16(const Weight& weight, uint32_t row, uint16_t* out);
// Reads the integers of a kInt8 row (cols values) and its scale.
void UnpackRowInt8(const Weight& weight, uint32_t row, int8_t* out, float* scale);
// Reads the values of a kInt4 row minus 8 (AlignUp(cols, 32) values) and its block scales.
void UnpackRowInt4(const Weight& weight, uint32_t row, int8_t* out, float* scales);
// The same as words of eight values: byte i has value i in its low half and value i + 4 in its high
// half, each plus 8. AlignUp(cols, 32) / 8 words.
void UnpackRowInt4Words(const Weight& weight, uint32_t row, uint32_t* out, float* scales);
// Reads a row of a type of codes, as RowMatrix has it.
void UnpackRowCodes(const Weight& weight, uint32_t row, uint8_t* codes, int16_t* scales,
                    float* row_scale);
// Reads its levels (cols of them), the scales of its blocks times that of the row, and the minimums
// of blocks that have them (HasMinimums).
void UnpackRowLevels(const Weight& weight, uint32_t row, int8_t* levels, float* scales,
                     float* minimums);

}  // namespace arn
