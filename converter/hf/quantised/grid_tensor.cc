#include "converter/hf/quantised/grid_tensor.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

#include "converter/base/int4_scale.h"
#include "kernels/contract/weight.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

// A scale of 0 makes zeros of any levels; bundles have a normal number and level 0 for that.
bool IsInt8Scale(float scale) { return scale == 0.0f || (scale >= FLT_MIN && scale <= FLT_MAX); }
bool IsInt4Scale(float scale) {
  const float rounded = F32FromBf16(Bf16FromF32(scale));
  return scale == 0.0f || (std::fabs(rounded) >= kSmallestInt4Scale && std::isfinite(rounded));
}

// Levels of fp4 are twice the floats.
float HalfOf(float scale) { return 0.5f * scale; }

}  // namespace

QuantisedGrid GridByColumns(const Checkpoint::Entry& codes, const Checkpoint::Entry& zeros,
                            const Checkpoint::Entry& scales, uint32_t bits, uint64_t rows,
                            uint64_t cols) {
  QuantisedGrid grid;
  grid.codes.stored = codes;
  grid.codes.bits = bits;
  grid.codes.rows = rows;
  grid.codes.cols = cols;
  grid.codes.by_column = true;
  grid.values = grid.zero_values = IntegerCodes(bits, 0);
  grid.is_integer = true;
  grid.scales.stored = scales;
  grid.scales.cols = scales.tensor->shape[0];
  grid.scales.by_column = true;
  grid.scales.matrix_rows = grid.scales.scale_rows = rows;
  grid.has_zeros = true;
  grid.zeros = grid.codes;
  grid.zeros.stored = zeros;
  grid.zeros.cols = grid.scales.cols;
  return grid;
}

GridTensor::GridTensor(SourceTensor tensor, std::string method, QuantisedGrid grid)
    : DecodedTensor(std::move(tensor), std::move(method)), grid_(std::move(grid)) {
  bool is_in_order = true;
  for (uint64_t c = 0; c < grid_.group_of.size(); ++c) {
    is_in_order = is_in_order && grid_.group_of[c] == c / grid_.group_cols;
  }
  if (is_in_order) grid_.group_of.clear();
  for (std::atomic<int>& known : held_) known.store(-1, std::memory_order_relaxed);
}

GridTensor::Tile GridTensor::ReadTile(uint64_t first, uint32_t n, bool with_codes) const {
  Tile tile;
  if (with_codes) {
    tile.codes.resize(n * cols());
    grid_.codes.Read(first, n, tile.codes.data());
  }
  tile.scales.resize(n * groups());
  grid_.scales.Read(first, n, tile.scales.data());
  if (!grid_.has_zeros) return tile;
  std::vector<uint8_t> zeros(n * groups());
  grid_.zeros.Read(first, n, zeros.data());
  tile.zeros.resize(zeros.size());
  for (size_t i = 0; i < zeros.size(); ++i) tile.zeros[i] = grid_.zero_values[zeros[i]];
  return tile;
}

void GridTensor::ReadRows(uint64_t first, uint32_t n, float* out) const {
  const Tile tile = ReadTile(first, n, true);
  const uint64_t width = cols();
  for (uint64_t r = 0; r < n; ++r) {
    const uint8_t* codes = tile.codes.data() + r * width;
    float* to = out + r * width;
    for (uint64_t c = 0; c < width; ++c) {
      const uint64_t group = grid_.group_of.empty() ? c / grid_.group_cols : grid_.group_of[c];
      to[c] = (grid_.values[codes[c]] - zero(tile, r, group)) * tile.scales[r * groups() + group];
    }
    if (grid_.factor == 1.0f) continue;
    for (uint64_t c = 0; c < width; ++c) to[c] *= grid_.factor;
  }
}

DecodedTensor::Held GridTensor::HeldBy(DType dtype) const {
  if (dtype != DType::kInt8 && dtype != DType::kInt4 && !IsInt4K(dtype) && dtype != DType::kFp4) {
    return Held::kNo;
  }
  std::atomic<int>& known = held_[static_cast<uint32_t>(dtype) - kFirstHeld];
  int held = known.load(std::memory_order_relaxed);
  if (held < 0) {
    held = static_cast<int>(FindHeld(dtype));
    known.store(held, std::memory_order_relaxed);
  }
  return static_cast<Held>(held);
}

DecodedTensor::Held GridTensor::FindHeld(DType dtype) const {
  const bool has_levels = dtype == DType::kFp4
                              ? grid_.codes.bits == 4 && grid_.values == Fp4E2m1Codes()
                              : grid_.is_integer;
  if (!has_levels || !grid_.group_of.empty()) return Held::kNo;
  if (dtype == DType::kInt8 && groups() != 1) return Held::kNo;
  if (dtype != DType::kInt8 && (grid_.codes.bits > 4 || grid_.factor != 1.0f)) return Held::kNo;
  const uint32_t unit =
      IsInt4K(dtype) ? kInt4BlockSize * FindCodeType(dtype)->super_blocks : kInt4BlockSize;
  if (groups() != 1 && grid_.group_cols % unit != 0) return Held::kNo;
  Held held = Held::kExactly;
  const uint64_t n_rows = rows();
  const uint64_t step = std::max<uint64_t>((uint64_t{1} << 20) / cols(), 1);
  for (uint64_t first = 0; first < n_rows && held != Held::kNo; first += step) {
    const auto n = static_cast<uint32_t>(std::min(step, n_rows - first));
    held = std::min(held, dtype == DType::kFp4 ? HeldFp4(first, n)
                          : IsInt4K(dtype)     ? HeldNested(first, n)
                                               : HeldRows(dtype, first, n));
  }
  return held;
}

DecodedTensor::Held GridTensor::HeldRows(DType dtype, uint64_t first, uint32_t n) const {
  const bool is_int4 = dtype == DType::kInt4;
  const float lowest = is_int4 ? -8.0f : -127.0f, highest = is_int4 ? 7.0f : 127.0f;
  // Codes of fewer bits are taken to have all values.
  const bool reads_codes = grid_.codes.bits == 8;
  const uint64_t n_codes = uint64_t{1} << grid_.codes.bits;
  const auto [least, most] =
      std::minmax_element(grid_.values.begin(), grid_.values.begin() + n_codes);
  const Tile tile = ReadTile(first, n, reads_codes);
  Held held = Held::kExactly;
  for (uint64_t i = 0; i < tile.scales.size(); ++i) {
    const float scale = tile.scales[i] * grid_.factor;
    if (!(is_int4 ? IsInt4Scale(scale) : IsInt8Scale(scale))) return Held::kNo;
    if (is_int4 && F32FromBf16(Bf16FromF32(scale)) != scale) held = Held::kNearly;
    float bottom = *least, top = *most;
    if (reads_codes) {  // of int8, which has one group
      const uint8_t* codes = tile.codes.data() + i * cols();
      bottom = top = grid_.values[codes[0]];
      for (uint64_t c = 1; c < cols(); ++c) {
        bottom = std::min(bottom, grid_.values[codes[c]]);
        top = std::max(top, grid_.values[codes[c]]);
      }
    }
    const float zero = tile.zeros.empty() ? 0.0f : tile.zeros[i];
    if (top - zero > highest || bottom - zero < lowest - (is_int4 ? 0.0f : 1.0f)) {
      return Held::kNo;
    }
    if (bottom - zero < lowest) held = Held::kNearly;
  }
  return held;
}

float GridTensor::LeastValue() const {
  return *std::min_element(grid_.values.begin(),
                           grid_.values.begin() + (uint64_t{1} << grid_.codes.bits));
}

DecodedTensor::Held GridTensor::HeldNested(uint64_t first, uint32_t n) const {
  const Tile tile = ReadTile(first, n, false);
  const float base = LeastValue();
  for (uint64_t i = 0; i < tile.scales.size(); ++i) {
    const float scale = tile.scales[i], rounded = F32FromF16(F16FromF32(scale));
    const float zero = (tile.zeros.empty() ? 0.0f : tile.zeros[i]) - base;
    if (rounded != scale || !std::isfinite(rounded) || zero < 0.0f || zero > 255.0f) {
      return Held::kNo;
    }
  }
  return Held::kExactly;
}

DecodedTensor::Held GridTensor::HeldFp4(uint64_t first, uint32_t n) const {
  if (grid_.has_zeros) return Held::kNo;
  for (const float scale : ReadTile(first, n, false).scales) {
    const float half = HalfOf(scale);
    if (!std::isfinite(half) || F32FromF16(F16FromF32(half)) != half) return Held::kNo;
  }
  return Held::kExactly;
}

void GridTensor::ReadInt8(uint64_t first, uint32_t n, int8_t* levels, float* scales) const {
  const Tile tile = ReadTile(first, n, true);
  for (uint64_t r = 0; r < n; ++r) {
    const float scale = tile.scales[r] * grid_.factor, row_zero = zero(tile, r, 0);
    scales[r] = scale == 0.0f ? 1.0f : scale;
    for (uint64_t c = 0; c < cols(); ++c) {
      const float level = grid_.values[tile.codes[r * cols() + c]] - row_zero;
      // Some kernels add two products with bytes of -128 in 16 bits.
      levels[r * cols() + c] =
          scale == 0.0f ? int8_t{0} : static_cast<int8_t>(std::max(level, -127.0f));
    }
  }
}

void GridTensor::ReadInt4(uint64_t first, uint32_t n, uint8_t* levels, uint16_t* scales) const {
  const Tile tile = ReadTile(first, n, true);
  const uint64_t padded = AlignUp(cols(), kInt4BlockSize), blocks = padded / kInt4BlockSize;
  for (uint64_t r = 0; r < n; ++r) {
    for (uint64_t c = 0; c < padded; ++c) {
      const uint64_t group = std::min(c / grid_.group_cols, groups() - 1);
      const float scale = tile.scales[r * groups() + group];
      if (c % kInt4BlockSize == 0) {
        scales[r * blocks + c / kInt4BlockSize] = Bf16FromF32(scale == 0.0f ? 1.0f : scale);
      }
      float level = 0.0f;
      if (c < cols() && scale != 0.0f) {
        level = grid_.values[tile.codes[r * cols() + c]] - zero(tile, r, group);
      }
      levels[r * padded + c] = static_cast<uint8_t>(static_cast<int>(level) + 8);
    }
  }
}

void GridTensor::ReadCodes(const CodeType& type, uint64_t first, uint32_t n, uint8_t* codes,
                           int16_t* entries) const {
  const Tile tile = ReadTile(first, n, true);
  if (type.dtype == DType::kFp4) return ReadFp4(type, tile, n, codes, entries);
  ReadNested(type, tile, n, codes, entries);
}

void GridTensor::ReadFp4(const CodeType& type, const Tile& tile, uint32_t n, uint8_t* codes,
                         int16_t* entries) const {
  const uint64_t padded = type.Padded(cols());
  for (uint64_t r = 0; r < n; ++r, codes += padded, entries += type.Entries(cols())) {
    for (uint64_t b = 0; b < type.Blocks(cols()); ++b) {
      const uint64_t group = std::min(b * type.block / grid_.group_cols, groups() - 1);
      const float half = HalfOf(tile.scales[r * groups() + group]);
      entries[b] = static_cast<int16_t>(F16FromF32(half));
    }
    std::fill_n(std::copy_n(tile.codes.data() + r * cols(), cols(), codes), padded - cols(),
                uint8_t{0});
  }
}

void GridTensor::ReadNested(const CodeType& type, const Tile& tile, uint32_t n, uint8_t* codes,
                            int16_t* entries) const {
  const uint64_t padded = type.Padded(cols()),
                 super_cols = uint64_t{type.super_blocks} * type.block;
  const float base = LeastValue();
  for (uint64_t r = 0; r < n; ++r, entries += type.Entries(cols())) {
    std::fill_n(entries, type.Entries(cols()), int16_t{0});
    for (uint64_t c = 0; c < padded; c += type.block) {
      const uint64_t at = r * groups() + std::min(c / grid_.group_cols, groups() - 1);
      if (c % super_cols == 0) {
        int16_t* pair = entries + type.SuperEntryOf(c / type.block);
        pair[0] = pair[1] = static_cast<int16_t>(F16FromF32(tile.scales[at]));
      }
      const float zero = (tile.zeros.empty() ? 0.0f : tile.zeros[at]) - base;
      entries[type.EntryOf(c / type.block)] = static_cast<int16_t>(256 + static_cast<int>(zero));
    }
    for (uint64_t c = 0; c < padded; ++c) {
      const float level = c < cols() ? grid_.values[tile.codes[r * cols() + c]] - base : 0.0f;
      codes[r * padded + c] = static_cast<uint8_t>(level);
    }
  }
}

}  // namespace arn::convert
