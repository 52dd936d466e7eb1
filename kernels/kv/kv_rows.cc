#include "kernels/kv/kv_rows.h"

#include <cmath>
#include <cstring>

namespace arn {
namespace {

// Rounds q and clamps it to [low, high]. NaN gives low: the pages of a damaged saved state may
// contain it.
float Rounded(float q, float low, float high) {
  return std::nearbyintf(Min(q > low ? q : low, high));
}

void StoreInt8(const float* x, uint32_t n, std::byte* out, float* scale) {
  float largest = 0.0f;
  for (uint32_t i = 0; i < n; ++i) largest = Max(std::fabs(x[i]), largest);  // skips NaN
  *scale = largest / 127.0f;
  for (uint32_t i = 0; i < n; ++i) {
    const float q = *scale == 0.0f ? 0.0f : x[i] / *scale;
    out[i] = static_cast<std::byte>(static_cast<int8_t>(Rounded(q, -127.0f, 127.0f)));
  }
}

// The (scale, least) pair of element i of a quantised slot.
const uint16_t* PairOf(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot,
                       uint32_t i) {
  const auto* pairs = static_cast<const uint16_t*>(block.scales);
  const uint32_t index =
      group.RangesByChannel(keys)
          ? slot / group.group_size * group.head_dim + i
          : slot * KvGroupsOf(group.head_dim, group.group_size) + i / group.group_size;
  return pairs + 2 * uint64_t{index};
}

void LoadQuantisedRow(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot,
                      float* x) {
  const uint32_t row_bytes = KvRowBytes(group.head_dim, block.bits);
  const std::byte* row = block.values + uint64_t{slot} * row_bytes;
  const uint32_t mask = (1u << block.bits) - 1;
  for (uint32_t i = 0; i < group.head_dim; ++i) {
    const uint16_t* pair = PairOf(group, keys, block, slot, i);
    const auto byte = static_cast<uint32_t>(row[i % row_bytes]);
    const uint32_t value = byte >> (i / row_bytes * block.bits) & mask;
    x[i] = F32FromF16(pair[1]) + F32FromF16(pair[0]) * static_cast<float>(value);
  }
}

}  // namespace

void StoreKvRow(const float* x, const KvGroup& group, uint32_t slot, const KvHeadBlock& block) {
  const uint32_t n = group.head_dim;
  std::byte* out = block.values + uint64_t{slot} * n * ElementBytes(block.type);
  // CheckProgram has rejected other types.
  if (block.type == DType::kF32) {
    std::memcpy(out, x, n * sizeof(float));
  } else if (block.type == DType::kF16) {
    for (uint32_t i = 0; i < n; ++i) {
      const uint16_t half = F16FromF32(x[i]);
      std::memcpy(out + i * sizeof half, &half, sizeof half);
    }
  } else if (block.type == DType::kInt8) {
    StoreInt8(x, n, out, static_cast<float*>(block.scales) + slot);
  }
}

void LoadKvRow(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot, float* x) {
  if (block.bits != 0) return LoadQuantisedRow(group, keys, block, slot, x);
  const uint32_t n = group.head_dim;
  const std::byte* in = block.values + uint64_t{slot} * n * ElementBytes(block.type);
  // CheckProgram has rejected other types.
  if (block.type == DType::kF32) {
    std::memcpy(x, in, n * sizeof(float));
  } else if (block.type == DType::kF16) {
    for (uint32_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, in + i * sizeof half, sizeof half);
      x[i] = F32FromF16(half);
    }
  } else if (block.type == DType::kInt8) {
    const float scale = static_cast<const float*>(block.scales)[slot];
    for (uint32_t i = 0; i < n; ++i) {
      x[i] = static_cast<float>(static_cast<int8_t>(in[i])) * scale;
    }
  }
}

KvRange RangeOf(float low, float high, uint32_t bits) {
  const auto steps = static_cast<float>((1u << bits) - 1);
  KvRange range;
  range.least = F16FromF32(low);
  // Uses the rounded `least`, so that the steps still reach the largest value.
  range.scale = F16FromF32((high - F32FromF16(range.least)) / steps);
  return range;
}

void StoreQuantisedRow(const float* x, const KvGroup& group, bool keys, uint32_t slot,
                       const KvHeadBlock& block) {
  const uint32_t row_bytes = KvRowBytes(group.head_dim, block.bits);
  const auto most = static_cast<float>((1u << block.bits) - 1);
  std::byte* row = block.values + uint64_t{slot} * row_bytes;
  std::memset(row, 0, row_bytes);
  for (uint32_t i = 0; i < group.head_dim; ++i) {
    const uint16_t* pair = PairOf(group, keys, block, slot, i);
    const float scale = F32FromF16(pair[0]);
    const float q = scale > 0.0f ? (x[i] - F32FromF16(pair[1])) / scale : 0.0f;
    const auto value = static_cast<uint32_t>(Rounded(q, 0.0f, most));
    row[i % row_bytes] |= static_cast<std::byte>(value << (i / row_bytes * block.bits));
  }
}

}  // namespace arn
