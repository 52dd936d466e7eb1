#include "kernels/pack/code_rows.h"

#include <cstring>

namespace arn {
namespace {

// Where a code lies in a unit: `bits` bits from `shift` up of one byte, or a bit of each vector.
struct CodePlace {
  uint32_t byte;  // of the first vector
  uint32_t shift;
  bool is_spread;
};

CodePlace PlaceOf(const CodeType& type, uint32_t row, uint32_t column) {
  const uint32_t quad = column / 4, byte = 4 * row + column % 4;
  if (type.bits == 8) return {quad * kCodeVector + byte, 0, false};
  if (type.bits == 2) return {quad / 4 * kCodeVector + byte, quad % 4 * 2, false};
  if (type.bits == 3 && quad >= 6) return {byte, quad == 6 ? 3u : 7u, true};
  return {quad / 2 * kCodeVector + byte, quad % 2 * 4, false};
}

// Codes of 6 bits lie as the lower 4, then the upper 2, do in these types.
constexpr CodeType kUpperBits = kInt2Codes, kLowerBits = kInt4KCodes;
constexpr uint32_t kUpperBytes = 4 * kCodeVector;

void PutCode(const CodeType& type, uint32_t row, uint32_t column, uint8_t code, std::byte* unit) {
  if (type.bits == 6) {
    PutCode(kLowerBits, row, column, code & 15, unit);
    return PutCode(kUpperBits, row, column, code >> 4, unit + kUpperBytes);
  }
  const CodePlace place = PlaceOf(type, row, column);
  if (!place.is_spread) {
    unit[place.byte] |= static_cast<std::byte>(code << place.shift);
    return;
  }
  for (uint32_t v = 0; v < type.bits; ++v) {
    unit[v * kCodeVector + place.byte] |= static_cast<std::byte>((code >> v & 1) << place.shift);
  }
}

uint8_t CodeAt(const CodeType& type, uint32_t row, uint32_t column, const std::byte* unit) {
  if (type.bits == 6) {
    const uint8_t upper = CodeAt(kUpperBits, row, column, unit + kUpperBytes);
    return static_cast<uint8_t>(CodeAt(kLowerBits, row, column, unit) | upper << 4);
  }
  const CodePlace place = PlaceOf(type, row, column);
  const auto bits = [&](uint32_t byte) { return static_cast<uint32_t>(unit[byte]) >> place.shift; };
  if (!place.is_spread) return static_cast<uint8_t>(bits(place.byte) & (type.n_levels() - 1));
  uint32_t code = 0;
  for (uint32_t v = 0; v < type.bits; ++v) {
    code |= (bits(v * kCodeVector + place.byte) & 1) << v;
  }
  return static_cast<uint8_t>(code);
}

template <typename T>
void Put(std::byte* out, uint64_t index, T value) {
  std::memcpy(out + index * sizeof(T), &value, sizeof value);
}

template <typename T>
T Get(const std::byte* from, uint64_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof value);
  return value;
}

// Returns where entry i of a row lies.
uint64_t EntryPlace(const CodeType& type, uint64_t i, uint32_t row) {
  if (type.is_nested()) return (i / 2 * kCodeColumns + row) * 2 + i % 2;
  return i * kCodeColumns + row;
}

void PutScale(const CodeType& type, std::byte* scales, uint64_t index, int16_t stored) {
  if (type.scale_bytes() == 2) return Put(scales, index, stored);
  if (type.scale == BlockScale::kInt8) Put(scales, index, static_cast<int8_t>(stored));
}

int16_t ScaleAt(const CodeType& type, const std::byte* scales, uint64_t index) {
  if (type.scale == BlockScale::kNone) return 1;
  return type.scale_bytes() == 2 ? Get<int16_t>(scales, index) : Get<int8_t>(scales, index);
}

// Returns the numbers of block b; get(n): entry n of the row.
template <class GetEntry>
BlockNumbers NumbersOf(const CodeType& type, uint64_t b, float row_scale, const GetEntry& get) {
  if (type.is_nested()) return NestedNumbers(type, b, get);
  return {BlockScaleOf(type, get(b)) * row_scale, 0.0f};
}

// Row `row` of the panel at `panel`, from row `source_row`.
void PackRow(const RowMatrix& source, const CodeType& type, const CodePanel& shape,
             uint32_t source_row, uint32_t row, std::byte* panel) {
  const uint64_t padded = type.Padded(source.cols), blocks = type.Blocks(source.cols);
  const auto* codes = static_cast<const uint8_t*>(source.values) + source_row * padded;
  const uint64_t entries = type.Entries(source.cols);
  const auto* scales = static_cast<const int16_t*>(source.scales) + source_row * entries;
  for (uint64_t i = 0; i < entries; ++i) {
    PutScale(type, panel + CodePanel::kScales, EntryPlace(type, i, row), scales[i]);
  }
  float sum = 0.0f;
  for (uint64_t b = 0; b < blocks; ++b) {
    int32_t levels = -type.middle() * static_cast<int32_t>(type.block);
    for (uint64_t c = b * type.block; c < Min(padded, (b + 1) * type.block); ++c) {
      levels += type.Level(codes[c]);
      PutCode(type, row, static_cast<uint32_t>(c % kCodeUnit), codes[c],
              panel + shape.codes_offset + c / kCodeUnit * shape.unit_bytes);
    }
    const auto get = [&](uint64_t i) { return scales[i]; };
    sum -= static_cast<float>(levels) * NumbersOf(type, b, 1.0f, get).scale;
  }
  Put(panel, row, sum);
  Put(panel + CodePanel::kRowScales, row, source.row_scales[source_row]);
  Put(panel + CodePanel::kBias, row, source.bias == nullptr ? 0.0f : source.bias[source_row]);
}

const std::byte* PanelOf(const Weight& weight, const CodePanel& shape, uint32_t row) {
  return weight.data + row / kCodeColumns * shape.bytes;
}

}  // namespace

void PackCodes(const RowMatrix& source, const CodeType& type, std::byte* out) {
  const CodePanel shape(type, source.cols);
  for (uint32_t first = 0; first < source.rows; first += kCodeColumns, out += shape.bytes) {
    std::memset(out, 0, shape.bytes);
    for (uint32_t r = 0; r < Min(kCodeColumns, source.rows - first); ++r) {
      PackRow(source, type, shape, first + r, r, out);
    }
  }
}

float UnpackCodesBias(const Weight& weight, const CodeType& type, uint32_t row) {
  const CodePanel shape(type, weight.cols);
  return Get<float>(PanelOf(weight, shape, row) + CodePanel::kBias, row % kCodeColumns);
}

void UnpackRowCodes(const Weight& weight, uint32_t row, uint8_t* codes, int16_t* scales,
                    float* row_scale) {
  const CodeType& type = *FindCodeType(weight.dtype);
  const CodePanel shape(type, weight.cols);
  const std::byte* panel = PanelOf(weight, shape, row);
  row %= kCodeColumns;
  *row_scale = Get<float>(panel + CodePanel::kRowScales, row);
  for (uint64_t i = 0; i < type.Entries(weight.cols); ++i) {
    scales[i] = ScaleAt(type, panel + CodePanel::kScales, EntryPlace(type, i, row));
  }
  for (uint64_t c = 0; c < type.Padded(weight.cols); ++c) {
    codes[c] = CodeAt(type, row, static_cast<uint32_t>(c % kCodeUnit),
                      panel + shape.codes_offset + c / kCodeUnit * shape.unit_bytes);
  }
}

void UnpackRowLevels(const Weight& weight, uint32_t row, int8_t* levels, float* scales,
                     float* minimums) {
  const CodeType& type = *FindCodeType(weight.dtype);
  const CodePanel shape(type, weight.cols);
  const std::byte* panel = PanelOf(weight, shape, row);
  row %= kCodeColumns;
  const float row_scale = Get<float>(panel + CodePanel::kRowScales, row);
  const auto get = [&](uint64_t i) {
    return ScaleAt(type, panel + CodePanel::kScales, EntryPlace(type, i, row));
  };
  for (uint64_t b = 0; b < type.Blocks(weight.cols); ++b) {
    const BlockNumbers numbers = NumbersOf(type, b, row_scale, get);
    scales[b] = numbers.scale;
    if (type.has_minimums()) minimums[b] = numbers.minimum;
  }
  for (uint32_t c = 0; c < weight.cols; ++c) {
    const std::byte* unit = panel + shape.codes_offset + c / kCodeUnit * shape.unit_bytes;
    levels[c] = type.Level(CodeAt(type, row, c % kCodeUnit, unit));
  }
}

void UnpackCodesF32(const Weight& weight, const CodeType& type, uint32_t row, float* out) {
  const CodePanel shape(type, weight.cols);
  const std::byte* panel = PanelOf(weight, shape, row);
  row %= kCodeColumns;
  const float row_scale = Get<float>(panel + CodePanel::kRowScales, row);
  const auto get = [&](uint64_t i) {
    return ScaleAt(type, panel + CodePanel::kScales, EntryPlace(type, i, row));
  };
  BlockNumbers numbers = {};
  for (uint32_t c = 0; c < weight.cols; ++c) {
    if (c % type.block == 0) numbers = NumbersOf(type, c / type.block, row_scale, get);
    const std::byte* unit = panel + shape.codes_offset + c / kCodeUnit * shape.unit_bytes;
    const int8_t level = type.Level(CodeAt(type, row, c % kCodeUnit, unit));
    out[c] =
        type.has_minimums() ? NestedValue(level, numbers) : CodeValue(level, numbers.scale, 1.0f);
  }
}

}  // namespace arn
