#include "kernels/pack/code_panel.h"
#include "kernels/pack/device_rows.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/panel.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn {
namespace {

// Far above any XNNPACK tile; keeps the products of tile parameters in range.
constexpr uint32_t kMaxNr = 128;
constexpr uint32_t kMaxKr = 16;
constexpr uint32_t kMaxSr = 16;

bool IsPanelLayout(DType dtype, const WeightLayout& layout) {
  if (!IsPowerOfTwo(layout.nr) || layout.nr > kMaxNr) return false;
  if (!IsPowerOfTwo(layout.kr) || layout.kr > kMaxKr) return false;
  if (!IsPowerOfTwo(layout.sr) || layout.sr > kMaxSr || layout.sr > layout.nr) return false;
  if (dtype == DType::kF32 || dtype == DType::kInt8) return layout.planes == 0;
  if (dtype == DType::kInt4) return layout.sr == 1 && (layout.planes == 1 || layout.planes == 2);
  return layout.sr == 1 && layout.kr <= 2 && layout.planes == 0;
}

bool IsDType(DType dtype) { return static_cast<uint32_t>(dtype) < kDTypeCount; }

}  // namespace

RowsBlobLayout RowsBlob(DType dtype, uint32_t rows, uint32_t cols) {
  RowsBlobLayout blob;
  if (dtype == DType::kInt4) {
    blob.row_bytes = AlignUp(cols, kInt4BlockSize) / 2;
    blob.scale_row_bytes = AlignUp(cols, kInt4BlockSize) / kInt4BlockSize * sizeof(uint16_t);
  } else {
    blob.row_bytes = uint64_t{cols} * ElementBytes(dtype);
    blob.scale_row_bytes = dtype == DType::kInt8 ? sizeof(float) : 0;
  }
  blob.scales_offset = AlignUp(rows * blob.row_bytes, kSliceAlign);
  blob.bias_offset = AlignUp(blob.scales_offset + rows * blob.scale_row_bytes, kSliceAlign);
  blob.bytes = blob.bias_offset + uint64_t{rows} * sizeof(float);
  return blob;
}

DeviceRows ShapeOfDeviceRows(DType dtype, uint32_t rows, uint32_t cols) {
  DeviceRows d;
  const RowsBlobLayout blob = RowsBlob(dtype, rows, cols);
  d.element_bytes = blob.row_bytes;
  if (dtype == DType::kInt4) d.block_row_bytes = AlignUp(blob.scale_row_bytes, sizeof(uint32_t));
  d.row_bytes = AlignUp(d.element_bytes, kDeviceQuadBytes);
  d.heads_offset = AlignUp(rows * d.row_bytes, kDeviceAlign);
  d.blocks_offset = d.heads_offset + rows * kDeviceHeadBytes;
  d.bytes = d.blocks_offset + rows * d.block_row_bytes;
  return d;
}

bool PackedBytes(DType dtype, const WeightLayout& layout, uint32_t rows, uint32_t cols,
                 uint64_t* bytes) {
  if (!IsDType(dtype) || rows == 0 || cols == 0) return false;
  // With rows and cols below 2^31 no sum or product here overflows 64 bits.
  if (rows >= uint32_t{1} << 31 || cols >= uint32_t{1} << 31) return false;
  if (const CodeType* type = FindCodeType(dtype)) {
    if (!kHasLowBits || !(layout == kCodeLayout)) return false;
    *bytes = CeilDiv(rows, kCodeColumns) * CodePanel(*type, cols).bytes;
  } else if (layout.order != WeightOrder::kPanels) {
    if (!(layout == WeightLayout{layout.order})) return false;
    if (layout.order == WeightOrder::kRows) {
      *bytes = RowsBlob(dtype, rows, cols).bytes;
    } else {
      // Padding makes much of little: with these bounds no sum overflows.
      if (layout.order != WeightOrder::kDeviceRows) return false;
      if (uint64_t{rows} * cols >= uint64_t{1} << 56) return false;
      *bytes = ShapeOfDeviceRows(dtype, rows, cols).bytes;
    }
  } else {
    if (!IsPanelLayout(dtype, layout)) return false;
    const uint64_t panels = CeilDiv(rows, layout.nr);
    uint64_t product;
    if (!CheckedMul(panels, ShapeOfPanel(dtype, layout, cols).bytes, &product)) return false;
    *bytes = product;
  }
  return *bytes < uint64_t{1} << 62;
}

}  // namespace arn
