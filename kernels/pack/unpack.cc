#include <cstring>

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

bool IsRows(const Weight& weight) { return weight.layout.order == WeightOrder::kRows; }

// Row `row` seen inside its panel.
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

// put(column, element) for the elements of a row of floats or of 16-bit types.
template <typename T, typename Put>
void ForEachElement(const Weight& weight, uint32_t row, const Put& put) {
  if (IsRows(weight)) {
    const std::byte* values = weight.data + uint64_t{row} * weight.cols * sizeof(T);
    for (uint32_t c = 0; c < weight.cols; ++c) put(c, Load<T>(values, c));
    return;
  }
  const PanelRow at = FindPanelRow(weight, row);
  const std::byte* values = at.panel + at.shape.values_offset;
  for (uint32_t c = 0; c < weight.cols; ++c) {
    put(c, Load<T>(values, at.shape.ValueIndex(at.row, c)));
  }
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

// A kInt8 row in either order.
struct Int8Row {
  const std::byte* values;
  PanelShape shape;  // of a panel, or of one that is a row wide
  uint32_t row;
  float scale;

  int8_t operator[](uint32_t column) const {
    return static_cast<int8_t>(values[shape.ValueIndex(row, column)]);
  }
};

Int8Row FindInt8Row(const Weight& weight, uint32_t row) {
  if (IsRows(weight)) {
    const RowsBlobLayout blob = RowsBlob(weight.dtype, weight.rows, weight.cols);
    PanelShape shape = {};
    shape.nr = shape.kr = shape.sr = 1;
    return {weight.data + row * blob.row_bytes, shape, 0,
            Load<float>(weight.data + blob.scales_offset, row)};
  }
  const PanelRow at = FindPanelRow(weight, row);
  return {at.panel + at.shape.values_offset, at.shape, at.row,
          Load<float>(at.panel + at.shape.scales_offset, at.row)};
}

// Block `block` of a kInt4 row: 32 values minus 8, and the scale.
void UnpackInt4Block(const Weight& weight, uint32_t row, uint64_t block, int8_t* out,
                     float* scale) {
  if (IsRows(weight)) {
    const RowsBlobLayout blob = RowsBlob(weight.dtype, weight.rows, weight.cols);
    const std::byte* bytes = weight.data + row * blob.row_bytes + block * (kInt4BlockSize / 2);
    for (uint32_t i = 0; i < kInt4BlockSize / 2; ++i) {
      const auto pair = static_cast<uint8_t>(bytes[i]);
      out[2 * i] = static_cast<int8_t>((pair & 15) - 8);
      out[2 * i + 1] = static_cast<int8_t>((pair >> 4) - 8);
    }
    *scale = F32FromBf16(
        Load<uint16_t>(weight.data + blob.scales_offset + row * blob.scale_row_bytes, block));
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

}  // namespace

void UnpackRow16(const Weight& weight, uint32_t row, uint16_t* out) {
  ForEachElement<uint16_t>(weight, row, [&](uint32_t c, uint16_t bits) { out[c] = bits; });
}

void UnpackRowInt8(const Weight& weight, uint32_t row, int8_t* out, float* scale) {
  const Int8Row from = FindInt8Row(weight, row);
  for (uint32_t c = 0; c < weight.cols; ++c) out[c] = from[c];
  *scale = from.scale;
}

void UnpackRowInt4(const Weight& weight, uint32_t row, int8_t* out, float* scales) {
  const uint64_t n_blocks = CeilDiv(weight.cols, kInt4BlockSize);
  for (uint64_t b = 0; b < n_blocks; ++b) {
    UnpackInt4Block(weight, row, b, out + b * kInt4BlockSize, scales + b);
  }
}

void UnpackRowF32(const Weight& weight, uint32_t row, float* out) {
  switch (weight.dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBf16: UnpackFloatRow(weight, row, out); return;
    case DType::kInt8: {
      const Int8Row from = FindInt8Row(weight, row);
      for (uint32_t c = 0; c < weight.cols; ++c) out[c] = static_cast<float>(from[c]) * from.scale;
      return;
    }
    case DType::kInt4:
      for (uint32_t c = 0; c < weight.cols; c += kInt4BlockSize) {
        int8_t values[kInt4BlockSize];
        float scale;
        UnpackInt4Block(weight, row, c / kInt4BlockSize, values, &scale);
        for (uint32_t i = 0; i < Min(kInt4BlockSize, weight.cols - c); ++i) {
          out[c + i] = static_cast<float>(values[i]) * scale;
        }
      }
      return;
  }
}

float UnpackBias(const Weight& weight, uint32_t row) {
  if (IsRows(weight)) {
    const uint64_t offset = RowsBlob(weight.dtype, weight.rows, weight.cols).bias_offset;
    return Load<float>(weight.data + offset, row);
  }
  const PanelRow at = FindPanelRow(weight, row);
  return Load<float>(at.panel + at.shape.bias_offset, at.row);
}

}  // namespace arn
