#include <cstring>

#include "kernels/pack/code_rows.h"
#include "kernels/pack/device_rows.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/panel.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

template <typename T>
T Load(const std::byte* from, uint64_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof value);
  return value;
}

// True for both row-major orders.
bool IsRows(const Weight& weight) { return weight.layout.order != WeightOrder::kPanels; }

// The parts of a row in a row-major order.
struct RowParts {
  const std::byte *values, *scales, *bias;
};

RowParts FindRow(const Weight& weight, uint32_t row) {
  if (weight.layout.order == WeightOrder::kDeviceRows) {
    const DeviceRows d = ShapeOfDeviceRows(weight.dtype, weight.rows, weight.cols);
    const std::byte* head = weight.data + d.heads_offset + row * kDeviceHeadBytes;
    const std::byte* blocks = weight.data + d.blocks_offset + row * d.block_row_bytes;
    return {weight.data + row * d.row_bytes, weight.dtype == DType::kInt4 ? blocks : head,
            head + kDeviceBiasOffset};
  }
  const RowsBlobLayout blob = RowsBlob(weight.dtype, weight.rows, weight.cols);
  return {weight.data + row * blob.row_bytes,
          weight.data + blob.scales_offset + row * blob.scale_row_bytes,
          weight.data + blob.bias_offset + row * sizeof(float)};
}

// A row and the panel that contains it.
struct PanelRow {
  PanelShape shape;
  const std::byte* panel;
  uint32_t row;
};

PanelRow FindPanelRow(const Weight& weight, uint32_t row) {
  PanelRow at;
  at.shape = ShapeOfPanel(weight.dtype, weight.layout, weight.cols);
  at.panel = weight.data + row / at.shape.nr * at.shape.bytes;
  at.row = row % at.shape.nr;
  return at;
}

// Calls put(column, index) for the first `cols` columns of a panel's row, chunk by chunk; index is
// the position among the panel's values.
template <typename Put>
void ForEachIndex(const PanelShape& shape, uint32_t row, uint32_t cols, const Put& put) {
  const uint64_t n_chunks = shape.k / shape.kr;
  uint64_t index = uint64_t{row} * shape.kr;
  for (uint64_t chunk = 0; chunk < n_chunks; ++chunk, index += uint64_t{shape.nr} * shape.kr) {
    const uint64_t first = shape.ChunkColumn(chunk, row);
    if (first >= cols) continue;
    const uint64_t n = Min<uint64_t>(shape.kr, cols - first);
    for (uint64_t i = 0; i < n; ++i) put(static_cast<uint32_t>(first + i), index + i);
  }
}

// Calls put(column, element) for the elements of a row of floats or of 16-bit types.
template <typename T, typename Put>
void ForEachElement(const Weight& weight, uint32_t row, const Put& put) {
  if (IsRows(weight)) {
    const std::byte* values = FindRow(weight, row).values;
    for (uint32_t c = 0; c < weight.cols; ++c) put(c, Load<T>(values, c));
    return;
  }
  const PanelRow at = FindPanelRow(weight, row);
  const std::byte* values = at.panel + at.shape.values_offset;
  ForEachIndex(at.shape, at.row, weight.cols,
               [&](uint32_t c, uint64_t i) { put(c, Load<T>(values, i)); });
}

void UnpackFloatRow(const Weight& weight, uint32_t row, float* out) {
  if (weight.dtype == DType::kF32) {
    ForEachElement<float>(weight, row, [&](uint32_t c, float value) { out[c] = value; });
  } else if (weight.dtype == DType::kF16) {
    ForEachElement<uint16_t>(weight, row,
                             [&](uint32_t c, uint16_t bits) { out[c] = F32FromF16(bits); });
  } else {
    ForEachElement<uint16_t>(weight, row,
                             [&](uint32_t c, uint16_t bits) { out[c] = F32FromBf16(bits); });
  }
}

// Calls put(column, value) for the values of a kInt8 row in any order. Returns its scale.
template <typename Put>
float ForEachInt8(const Weight& weight, uint32_t row, const Put& put) {
  const auto value = [](const std::byte* values, uint64_t i) {
    return static_cast<int8_t>(values[i]);
  };
  if (IsRows(weight)) {
    const RowParts parts = FindRow(weight, row);
    for (uint32_t c = 0; c < weight.cols; ++c) put(c, value(parts.values, c));
    return Load<float>(parts.scales, 0);
  }
  const PanelRow at = FindPanelRow(weight, row);
  const std::byte* values = at.panel + at.shape.values_offset;
  ForEachIndex(at.shape, at.row, weight.cols,
               [&](uint32_t c, uint64_t i) { put(c, value(values, i)); });
  return Load<float>(at.panel + at.shape.scales_offset, at.row);
}

// Unpacks block `block` of a kInt4 row: 32 values minus 8, and the scale.
void UnpackInt4Block(const Weight& weight, uint32_t row, uint64_t block, int8_t* out,
                     float* scale) {
  if (IsRows(weight)) {
    const RowParts parts = FindRow(weight, row);
    const std::byte* bytes = parts.values + block * (kInt4BlockSize / 2);
    const bool in_words = weight.layout.order == WeightOrder::kDeviceRows;
    for (uint32_t i = 0; i < kInt4BlockSize / 2; ++i) {
      const auto pair = static_cast<uint8_t>(bytes[i]);
      int8_t* low = out + (in_words ? i / 4 * 8 + i % 4 : 2 * i);
      *low = static_cast<int8_t>((pair & 15) - 8);
      low[in_words ? 4 : 1] = static_cast<int8_t>((pair >> 4) - 8);
    }
    *scale = F32FromBf16(Load<uint16_t>(parts.scales, block));
    return;
  }
  const PanelRow at = FindPanelRow(weight, row);
  const PanelShape& p = at.shape;
  const std::byte* bytes = at.panel + p.values_offset + block * p.block_bytes;
  for (uint32_t pair = 0; pair < kInt4BlockSize / (2 * p.kr); ++pair) {
    for (uint32_t i = 0; i < p.kr; ++i) {
      const auto both = static_cast<uint8_t>(
          static_cast<uint8_t>(bytes[(uint64_t{pair} * p.nr + at.row) * p.kr + i]) ^ 0x88);
      out[pair * 2 * p.kr + i] = static_cast<int8_t>((both & 15) - 8);
      out[pair * 2 * p.kr + p.kr + i] = static_cast<int8_t>((both >> 4) - 8);
    }
  }
  *scale = 16.0f * F32FromBf16(Load<uint16_t>(bytes + uint64_t{p.nr} * kInt4BlockSize / 2, at.row));
}

// Four values are the bytes of a word in the most common panels.
constexpr uint32_t kWordValues = 4;

// Copies the values of a kInt8 panel's row, four at a time. REQUIRES: kr is 4.
void CopyInt8Words(const PanelRow& at, uint32_t cols, int8_t* out) {
  const std::byte* from = at.panel + at.shape.values_offset + at.row * kWordValues;
  const uint64_t stride = uint64_t{at.shape.nr} * kWordValues;
  for (uint64_t chunk = 0; chunk < at.shape.k / kWordValues; ++chunk, from += stride) {
    const uint64_t first = at.shape.ChunkColumn(chunk, at.row);
    if (first + kWordValues <= cols) {
      std::memcpy(out + first, from, kWordValues);
    } else if (first < cols) {
      std::memcpy(out + first, from, cols - first);
    }
  }
}

uint32_t PackInt4Word(const int8_t* values) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto low = static_cast<uint32_t>(values[i] + 8);
    const auto high = static_cast<uint32_t>(values[4 + i] + 8);
    word |= (low | high << 4) << 8 * i;
  }
  return word;
}

}  // namespace

void UnpackRow16(const Weight& weight, uint32_t row, uint16_t* out) {
  ForEachElement<uint16_t>(weight, row, [&](uint32_t c, uint16_t bits) { out[c] = bits; });
}

void UnpackRowInt8(const Weight& weight, uint32_t row, int8_t* out, float* scale) {
  if (!IsRows(weight) && weight.layout.kr == kWordValues) {
    const PanelRow at = FindPanelRow(weight, row);
    CopyInt8Words(at, weight.cols, out);
    *scale = Load<float>(at.panel + at.shape.scales_offset, at.row);
    return;
  }
  *scale = ForEachInt8(weight, row, [&](uint32_t c, int8_t value) { out[c] = value; });
}

void UnpackRowInt4Words(const Weight& weight, uint32_t row, uint32_t* out, float* scales) {
  constexpr uint32_t kBlockWords = kInt4BlockSize / 8;
  const uint64_t n_blocks = CeilDiv(weight.cols, kInt4BlockSize);
  if (IsRows(weight) || weight.layout.kr != kWordValues) {
    for (uint64_t b = 0; b < n_blocks; ++b) {
      int8_t values[kInt4BlockSize];
      UnpackInt4Block(weight, row, b, values, scales + b);
      for (uint32_t w = 0; w < kBlockWords; ++w) {
        out[b * kBlockWords + w] = PackInt4Word(values + 8 * w);
      }
    }
    return;
  }
  // The words of such a panel have the same order, with signed halves.
  const PanelRow at = FindPanelRow(weight, row);
  const PanelShape& p = at.shape;
  for (uint64_t b = 0; b < n_blocks; ++b) {
    const std::byte* block = at.panel + p.values_offset + b * p.block_bytes;
    for (uint32_t w = 0; w < kBlockWords; ++w) {
      out[b * kBlockWords + w] = Load<uint32_t>(block, uint64_t{w} * p.nr + at.row) ^ 0x88888888u;
    }
    const std::byte* of_rows = block + uint64_t{p.nr} * kInt4BlockSize / 2;
    scales[b] = 16.0f * F32FromBf16(Load<uint16_t>(of_rows, at.row));
  }
}

void UnpackRowInt4(const Weight& weight, uint32_t row, int8_t* out, float* scales) {
  const uint64_t n_blocks = CeilDiv(weight.cols, kInt4BlockSize);
  for (uint64_t b = 0; b < n_blocks; ++b) {
    UnpackInt4Block(weight, row, b, out + b * kInt4BlockSize, scales + b);
  }
}

void UnpackRowF32(const Weight& weight, uint32_t row, float* out) {
  if constexpr (kHasLowBits) {
    if (const CodeType* type = FindCodeType(weight.dtype)) {
      return UnpackCodesF32(weight, *type, row, out);
    }
  }
  if (weight.dtype == DType::kInt8) {
    const float scale = ForEachInt8(
        weight, row, [&](uint32_t c, int8_t value) { out[c] = static_cast<float>(value); });
    for (uint32_t c = 0; c < weight.cols; ++c) out[c] *= scale;
  } else if (weight.dtype == DType::kInt4) {
    for (uint32_t c = 0; c < weight.cols; c += kInt4BlockSize) {
      int8_t values[kInt4BlockSize];
      float scale;
      UnpackInt4Block(weight, row, c / kInt4BlockSize, values, &scale);
      for (uint32_t i = 0; i < Min(kInt4BlockSize, weight.cols - c); ++i) {
        out[c + i] = static_cast<float>(values[i]) * scale;
      }
    }
  } else {
    UnpackFloatRow(weight, row, out);
  }
}

float UnpackBias(const Weight& weight, uint32_t row) {
  if constexpr (kHasLowBits) {
    if (const CodeType* type = FindCodeType(weight.dtype)) {
      return UnpackCodesBias(weight, *type, row);
    }
  }
  if (IsRows(weight)) return Load<float>(FindRow(weight, row).bias, 0);
  const PanelRow at = FindPanelRow(weight, row);
  return Load<float>(at.panel + at.shape.bias_offset, at.row);
}

}  // namespace arn
