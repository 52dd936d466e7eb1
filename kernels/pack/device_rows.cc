#include "kernels/pack/device_rows.h"

#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kBlockWords = kInt4BlockSize / 8;

// Sum of the values of a block of int4 words.
int32_t SumOfBlock(const uint32_t* words) {
  uint32_t sum = 0;
  for (uint32_t w = 0; w < kBlockWords; ++w) {
    const uint32_t pairs = (words[w] & 0x0f0f0f0fu) + (words[w] >> 4 & 0x0f0f0f0fu);
    sum += pairs * 0x01010101u >> 24;
  }
  return static_cast<int32_t>(sum) - 8 * static_cast<int32_t>(kInt4BlockSize);
}

// Returns the bits of a head's sum.
uint32_t SumOf(const DeviceRows& shape, DType dtype, const DeviceRowSource& source) {
  if (dtype == DType::kInt8) {
    const auto* values = static_cast<const int8_t*>(source.elements);
    int32_t sum = 0;
    for (uint64_t c = 0; c < shape.element_bytes; ++c) sum += values[c];
    return static_cast<uint32_t>(sum);
  }
  if (dtype != DType::kInt4) return 0;
  const auto* words = static_cast<const uint32_t*>(source.elements);
  double sum = 0.0;
  for (uint64_t b = 0; b < shape.element_bytes / (kInt4BlockSize / 2); ++b) {
    const int32_t of_block = SumOfBlock(words + b * kBlockWords);
    sum += static_cast<double>(of_block) * static_cast<double>(F32FromBf16(source.block_scales[b]));
  }
  return BitsFromF32(static_cast<float>(sum));
}

// Packs 32 values of 0 to 15, one in each byte.
void PackInt4Block(const uint8_t* values, std::byte* out) {
  for (uint32_t i = 0; i < kInt4BlockSize / 2; ++i) {
    const uint32_t low = i / 4 * 8 + i % 4;
    out[i] = static_cast<std::byte>(values[low] | values[low + 4] << 4);
  }
}

void PackDeviceRows(const RowMatrix& source, std::byte* out) {
  const DeviceRows shape = ShapeOfDeviceRows(source.dtype, source.rows, source.cols);
  std::memset(out, 0, shape.bytes);
  const uint64_t n_blocks = shape.element_bytes / (kInt4BlockSize / 2);
  const auto* from = static_cast<const std::byte*>(source.values);
  for (uint32_t r = 0; r < source.rows; ++r) {
    std::byte* values = out + r * shape.row_bytes;
    DeviceRowSource row;
    row.elements = from + r * shape.element_bytes;
    row.bias = source.bias == nullptr ? 0.0f : source.bias[r];
    if (source.dtype == DType::kInt8) row.scale = static_cast<const float*>(source.scales)[r];
    if (source.dtype == DType::kInt4) {
      const auto* unpacked = static_cast<const uint8_t*>(source.values);
      unpacked += r * n_blocks * kInt4BlockSize;
      for (uint64_t b = 0; b < n_blocks; ++b) {
        PackInt4Block(unpacked + b * kInt4BlockSize, values + b * (kInt4BlockSize / 2));
      }
      row.elements = values;
      row.block_scales = static_cast<const uint16_t*>(source.scales) + r * n_blocks;
    }
    PutDeviceRow(shape, source.dtype, row, values, out + shape.heads_offset + r * kDeviceHeadBytes,
                 out + shape.blocks_offset + r * shape.block_row_bytes);
  }
}

}  // namespace

void PutDeviceRow(const DeviceRows& shape, DType dtype, const DeviceRowSource& source,
                  std::byte* values, std::byte* head, std::byte* blocks) {
  if (source.elements != values) std::memcpy(values, source.elements, shape.element_bytes);
  std::memset(values + shape.element_bytes, 0, shape.row_bytes - shape.element_bytes);
  const uint32_t words[] = {BitsFromF32(source.scale), BitsFromF32(source.bias),
                            SumOf(shape, dtype, source), 0};
  static_assert(sizeof words == kDeviceHeadBytes);
  std::memcpy(head, words, sizeof words);
  if (dtype != DType::kInt4) return;
  const uint64_t bytes = shape.element_bytes / (kInt4BlockSize / 2) * sizeof(uint16_t);
  std::memcpy(blocks, source.block_scales, bytes);
  std::memset(blocks + bytes, 0, shape.block_row_bytes - bytes);
}

void PackRows(const RowMatrix& source, const WeightLayout& layout, std::byte* out) {
  if (layout.order == WeightOrder::kDeviceRows) return PackDeviceRows(source, out);
  PackCpuRows(source, layout, out);
}

}  // namespace arn
