#include <cstring>

#include "kernels/pack/code_rows.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/panel.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

float BiasOf(const RowMatrix& source, uint32_t row) {
  return source.bias == nullptr ? 0.0f : source.bias[row];
}

// Packed parts may be unaligned for their type.
template <typename T>
void Store(std::byte* out, uint64_t index, T value) {
  std::memcpy(out + index * sizeof(T), &value, sizeof value);
}

void PackAsRows(const RowMatrix& source, std::byte* out) {
  const RowsBlobLayout blob = RowsBlob(source.dtype, source.rows, source.cols);
  std::memset(out, 0, blob.bytes);
  const uint64_t value_bytes = source.rows * blob.row_bytes;
  if (source.dtype == DType::kInt4) {
    const auto* values = static_cast<const uint8_t*>(source.values);
    for (uint64_t i = 0; i < value_bytes; ++i) {
      out[i] = static_cast<std::byte>(values[2 * i] | values[2 * i + 1] << 4);
    }
  } else {
    std::memcpy(out, source.values, value_bytes);
  }
  if (blob.scale_row_bytes != 0) {
    std::memcpy(out + blob.scales_offset, source.scales, source.rows * blob.scale_row_bytes);
  }
  for (uint32_t r = 0; r < source.rows; ++r) {
    Store(out + blob.bias_offset, r, BiasOf(source, r));
  }
}

// Packs rows [first, first + n) of the source as one panel; `out` must be zero-filled. T: float, or
// uint16_t for the bits of a 16-bit type.
template <typename T>
void PackPanelFloat(const RowMatrix& source, const PanelShape& p, uint32_t first, uint32_t n,
                    std::byte* out) {
  const auto* values = static_cast<const T*>(source.values) + uint64_t{first} * source.cols;
  std::byte* packed = out + p.values_offset;
  for (uint32_t r = 0; r < n; ++r) Store(out, r, BiasOf(source, first + r));
  for (uint64_t chunk = 0; chunk < p.k / p.kr; ++chunk) {
    for (uint32_t r = 0; r < n; ++r) {
      const uint64_t begin = p.ChunkColumn(chunk, r);
      if (begin >= source.cols) continue;
      const uint64_t count = Min<uint64_t>(p.kr, source.cols - begin);
      std::memcpy(packed + (chunk * p.nr + r) * p.kr * sizeof(T),
                  values + uint64_t{r} * source.cols + begin, count * sizeof(T));
    }
  }
}

// Returns the sum of n values. Adds eight at a time in lanes of 16 bits, since compilers do not
// vectorise the plain loop at -O2 and it would take half of the packing.
int32_t SumOf(const int8_t* values, uint32_t n) {
  constexpr uint64_t kFlip = 0x8080808080808080u, kEven = 0x00ff00ff00ff00ffu;
  constexpr uint32_t kMostSteps = 128;  // times two bytes fit a lane
  int64_t sum = 0;
  uint32_t i = 0;
  while (i + 8 <= n) {
    uint64_t lanes = 0;
    for (uint32_t step = 0; step < kMostSteps && i + 8 <= n; ++step, i += 8) {
      uint64_t eight;
      std::memcpy(&eight, values + i, sizeof eight);
      eight ^= kFlip;  // adds 128 to each
      lanes += (eight & kEven) + (eight >> 8 & kEven);
      sum -= 8 * 128;
    }
    for (; lanes != 0; lanes >>= 16) sum += static_cast<uint16_t>(lanes);
  }
  for (; i < n; ++i) sum += values[i];
  return static_cast<int32_t>(sum);
}

void PackPanelInt8(const RowMatrix& source, const PanelShape& p, uint32_t first, uint32_t n,
                   std::byte* out) {
  const auto* values = static_cast<const int8_t*>(source.values) + uint64_t{first} * source.cols;
  const auto* scales = static_cast<const float*>(source.scales) + first;
  std::byte* packed = out + p.values_offset;
  for (uint64_t chunk = 0; chunk < p.k / p.kr; ++chunk) {
    for (uint32_t r = 0; r < n; ++r) {
      const uint64_t begin = p.ChunkColumn(chunk, r);
      if (begin >= source.cols) continue;
      const uint64_t count = Min<uint64_t>(p.kr, source.cols - begin);
      std::byte* to = packed + (chunk * p.nr + r) * p.kr;
      const int8_t* from = values + uint64_t{r} * source.cols + begin;
      // A call for each chunk would be most of the time.
      if (count == 8) {
        std::memcpy(to, from, 8);
      } else if (count == 4) {
        std::memcpy(to, from, 4);
      } else {
        std::memcpy(to, from, count);
      }
    }
  }
  for (uint32_t r = 0; r < n; ++r) {
    Store(out, r, -SumOf(values + uint64_t{r} * source.cols, source.cols));
    Store(out + p.scales_offset, r, scales[r]);
    Store(out + p.bias_offset, r, BiasOf(source, first + r));
  }
}

void PackPanelInt4(const RowMatrix& source, const PanelShape& p, uint32_t first, uint32_t n,
                   std::byte* out) {
  const uint64_t n_blocks = p.k / kInt4BlockSize;
  const auto* values = static_cast<const uint8_t*>(source.values) + uint64_t{first} * p.k;
  const auto* scales = static_cast<const uint16_t*>(source.scales) + uint64_t{first} * n_blocks;
  for (uint32_t r = 0; r < n; ++r) {
    const uint8_t* row = values + r * p.k;
    // Sums in XNNPACK's order, so that the bytes are identical.
    float sum = 0.0f;
    for (uint64_t b = 0; b < n_blocks; ++b) {
      const float scale = F32FromBf16(scales[r * n_blocks + b]);
      std::byte* block = out + p.values_offset + b * p.block_bytes;
      for (uint64_t pair = 0; pair < kInt4BlockSize / (2 * p.kr); ++pair) {
        const uint8_t* low = row + b * kInt4BlockSize + pair * 2 * p.kr;
        int32_t pair_sum = 0;
        for (uint32_t i = 0; i < p.kr; ++i) {
          pair_sum += low[i] + low[p.kr + i] - 16;
          block[(pair * p.nr + r) * p.kr + i] =
              static_cast<std::byte>((low[i] | low[p.kr + i] << 4) ^ 0x88);
        }
        sum -= static_cast<float>(pair_sum) * scale;
      }
      // Divided by 16: the kernels multiply nibbles in the high half of a byte, without a shift.
      Store(block + uint64_t{p.nr} * kInt4BlockSize / 2, r,
            static_cast<uint16_t>(BitsFromF32(scale / 16.0f) >> 16));
    }
    Store(out, r, sum);
    Store(out + p.bias_offset, r, BiasOf(source, first + r));
  }
}

}  // namespace

void PackCpuRows(const RowMatrix& source, const WeightLayout& layout, std::byte* out) {
  if constexpr (kHasLowBits) {
    if (const CodeType* type = FindCodeType(source.dtype)) return PackCodes(source, *type, out);
  }
  if (layout.order == WeightOrder::kRows) {
    PackAsRows(source, out);
    return;
  }
  const PanelShape p = ShapeOfPanel(source.dtype, layout, source.cols);
  for (uint32_t first = 0; first < source.rows; first += p.nr, out += p.bytes) {
    const uint32_t n = Min(p.nr, source.rows - first);
    std::memset(out, 0, p.bytes);
    if (source.dtype == DType::kF32) {
      PackPanelFloat<float>(source, p, first, n, out);
    } else if (source.dtype == DType::kInt8) {
      PackPanelInt8(source, p, first, n, out);
    } else if (source.dtype == DType::kInt4) {
      PackPanelInt4(source, p, first, n, out);
    } else {
      PackPanelFloat<uint16_t>(source, p, first, n, out);
    }
  }
}

}  // namespace arn
