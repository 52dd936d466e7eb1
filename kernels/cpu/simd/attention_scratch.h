// Where the parts of an attention task lie in its scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/simd/kernels.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::cpu {

// The largest vector has 16 floats. Heads are padded to whole vectors with zeros.
inline constexpr uint32_t kMaxLanes = 16;
// Tokens of a tile whose keys and values are floats.
inline constexpr uint32_t kFloatTokens = 32;
inline constexpr uint32_t kTileQueries = 32;

constexpr uint32_t AttentionStride(uint32_t head_dim) {
  return static_cast<uint32_t>(AlignUp(head_dim, kMaxLanes));
}
static_assert(AttentionStride(1) == DotValueWidth(1));

// What a query has gathered of some tokens: the largest score, the sum of the weights relative to
// it, and that of the values [stride]. A record of kMaxLanes + stride floats.
struct AttentionPartial {
  float* max;
  float* total;
  float* sums;
};
constexpr uint32_t PartialFloats(uint32_t head_dim) {
  return kMaxLanes + AttentionStride(head_dim);
}
inline AttentionPartial PartialAt(float* record) {
  return {record, record + 1, record + kMaxLanes};
}

struct AttentionScratch {
  uint32_t stride;
  float* q;       // [queries, stride], times the scale
  float* scores;  // [queries, kDotTokens]
  float* max;     // [queries]
  float* total;   // [queries, kMaxLanes]: one sum of weights per lane
  float* sums;    // [queries, stride]: unnormalised output
  float* merged;  // [queries, PartialFloats]: of the segments that are done
  // Tiles of floats.
  float* k;  // [kFloatTokens, stride]; unused when the page can be read in place
  float* v;  // [kFloatTokens, stride]
  // Tiles of int8.
  uint32_t quads;  // from query to query
  int32_t* q_high;
  int32_t* q_low;
  int32_t* q_high_sums;
  int32_t* q_low_sums;
  float* q_factors;
  uint8_t* keys;   // packed
  int8_t* spread;  // queries, where keys are multiplied unpacked: then in the same place
  uint8_t* values;
  uint8_t* w_high;  // [queries, kDotTokens]
  uint8_t* w_low;
  float* w_factors;
};

// at null: only the bytes are computed.
inline AttentionScratch PlaceScratch(const AttentionKind& kind, std::byte* at, uint64_t* bytes) {
  const uint64_t queries = AttentionTileQueries(kind);
  AttentionScratch s;
  s.stride = AttentionStride(kind.head_dim);
  s.quads = s.stride / 4;
  uint64_t used = 0;
  auto take = [&](auto** out, uint64_t n) {
    using T = std::remove_reference_t<decltype(**out)>;
    *out = at == nullptr ? nullptr : reinterpret_cast<T*>(at + used);
    used += AlignUp(n * sizeof(T), kSliceAlign);
  };
  take(&s.q, queries * s.stride);
  take(&s.scores, queries * kDotTokens);
  take(&s.max, queries);
  take(&s.total, queries * kMaxLanes);
  take(&s.sums, queries * s.stride);
  take(&s.merged, queries * PartialFloats(kind.head_dim));
  take(&s.k, uint64_t{kFloatTokens} * s.stride);
  take(&s.v, uint64_t{kFloatTokens} * s.stride);
  take(&s.q_high, queries * s.quads);
  take(&s.q_low, queries * s.quads);
  take(&s.q_high_sums, queries);
  take(&s.q_low_sums, queries);
  take(&s.q_factors, queries);
  take(&s.keys, Max(DotKeyBytes(kind.head_dim), kDotRowQueries * DotSpreadBytes(kind.head_dim)));
  s.spread = reinterpret_cast<int8_t*>(s.keys);
  take(&s.values, DotValueBytes(kind.head_dim));
  take(&s.w_high, queries * kDotTokens);
  take(&s.w_low, queries * kDotTokens);
  take(&s.w_factors, queries);
  if (bytes != nullptr) *bytes = used;
  return s;
}

}  // namespace arn::cpu
