#include "kernels/cpu/repack.h"

#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::cpu {
namespace {

// Offsets into the scratch: a slab as a RowMatrix, and one unpacked row.
struct Parts {
  uint64_t values, scales, bias, row, row_scales, bytes;
};

Parts PlanParts(const Weight& weight, const WeightLayout& layout) {
  const uint64_t padded = AlignUp(weight.cols, kInt4BlockSize);
  // Unpacked int4 takes one byte per value.
  const uint64_t element = weight.dtype == DType::kInt4 ? 1 : ElementBytes(weight.dtype);
  const uint64_t n_scales = layout.nr * (padded / kInt4BlockSize);
  Parts p;
  p.values = 0;
  p.scales = AlignUp(layout.nr * padded * element, kSliceAlign);
  p.bias = p.scales + AlignUp(n_scales * sizeof(float), kSliceAlign);
  p.row = p.bias + AlignUp(layout.nr * sizeof(float), kSliceAlign);
  p.row_scales = p.row + AlignUp(padded, kSliceAlign);
  p.bytes = p.row_scales + AlignUp(padded / kInt4BlockSize * sizeof(float), kSliceAlign);
  return p;
}

}  // namespace

uint64_t RepackScratchBytes(const Weight& weight, const WeightLayout& layout) {
  return PlanParts(weight, layout).bytes;
}

void RepackSlabs(const Weight& weight, const WeightLayout& layout, uint32_t begin, uint32_t end,
                 std::byte* scratch, std::byte* out) {
  uint64_t slab_bytes = 0;
  if (!PackedBytes(weight.dtype, layout, layout.nr, weight.cols, &slab_bytes)) return;
  const Parts parts = PlanParts(weight, layout);
  const uint64_t padded = AlignUp(weight.cols, kInt4BlockSize);
  const uint64_t n_blocks = padded / kInt4BlockSize;
  auto* bias = reinterpret_cast<float*>(scratch + parts.bias);
  auto* row = reinterpret_cast<int8_t*>(scratch + parts.row);
  auto* row_scales = reinterpret_cast<float*>(scratch + parts.row_scales);
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t first = i * layout.nr;
    RowMatrix slab;
    slab.dtype = weight.dtype;
    slab.rows = Min<uint32_t>(layout.nr, weight.rows - first);
    slab.cols = weight.cols;
    slab.values = scratch + parts.values;
    slab.scales = scratch + parts.scales;
    slab.bias = bias;
    for (uint32_t r = 0; r < slab.rows; ++r) {
      bias[r] = UnpackBias(weight, first + r);
      if (weight.dtype == DType::kF32) {
        UnpackRowF32(weight, first + r,
                     reinterpret_cast<float*>(scratch + parts.values) + uint64_t{r} * weight.cols);
      } else if (weight.dtype == DType::kF16 || weight.dtype == DType::kBf16) {
        UnpackRow16(
            weight, first + r,
            reinterpret_cast<uint16_t*>(scratch + parts.values) + uint64_t{r} * weight.cols);
      } else if (weight.dtype == DType::kInt8) {
        UnpackRowInt8(weight, first + r,
                      reinterpret_cast<int8_t*>(scratch + parts.values) + uint64_t{r} * weight.cols,
                      reinterpret_cast<float*>(scratch + parts.scales) + r);
      } else {
        UnpackRowInt4(weight, first + r, row, row_scales);
        auto* values = reinterpret_cast<uint8_t*>(scratch + parts.values) + r * padded;
        auto* scales = reinterpret_cast<uint16_t*>(scratch + parts.scales) + r * n_blocks;
        for (uint64_t c = 0; c < padded; ++c) values[c] = static_cast<uint8_t>(row[c] + 8);
        for (uint64_t b = 0; b < n_blocks; ++b) scales[b] = Bf16FromF32(row_scales[b]);
      }
    }
    PackCpuRows(slab, layout, out + i * slab_bytes);
  }
}

}  // namespace arn::cpu
