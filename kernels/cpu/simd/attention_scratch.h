// Layout of an attention task's scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/simd/kernels.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::cpu {

// The widest vector has 16 floats. Heads are zero-padded to whole vectors.
inline constexpr uint32_t kMaxLanes = 16;
// Tokens per tile of float keys and values.
inline constexpr uint32_t kFloatTokens = 32;
inline constexpr uint32_t kTileQueries = 32;

constexpr uint32_t AttentionStride(uint32_t head_dim) {
  return static_cast<uint32_t>(AlignUp(head_dim, kMaxLanes));
}
static_assert(AttentionStride(1) == DotValueWidth(1));

// A query's partial result over some tokens: maximum score, sum of the weights relative to it, and
// the weighted sum of values [stride]. A record takes kMaxLanes + stride floats.
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
  float* q;       // [queries, stride], multiplied by the scale
  float* scores;  // [queries, kDotTokens]
  float* max;     // [queries]
  float* total;   // [queries, kMaxLanes]: sum of weights per lane
  float* sums;    // [queries, stride]: unnormalised output
  float* merged;  // [queries, PartialFloats]: finished segments
  // Float tiles.
  float* k;  // [kFloatTokens, stride]; unused if the page can be read in place
  float* v;  // [kFloatTokens, stride]
  // int8 tiles.
  uint32_t quads;  // stride between queries
  int32_t* q_high;
  int32_t* q_low;
  int32_t* q_high_sums;
  int32_t* q_low_sums;
  float* q_factors;
  uint8_t* keys;    // packed
  int8_t* spread;   // queries for unpacked keys; shares the memory of `keys`
  uint8_t* values;  // packed
  uint8_t* w_high;  // [queries, kDotTokens]
  uint8_t* w_low;
  float* w_factors;
  // Quantised tiles; share the memory of float tiles and of values not yet packed.
  uint8_t* unsplit;         // packed as bytes, before splitting into 4 or 2 bits
  uint8_t* quantised_keys;  // packed
  float* ranges;
  int32_t* folded_high;  // queries times scales of ranges, quantised like q_high
  int32_t* folded_low;
  int32_t* no_sums;       // [queries]: zeros
  float* folded_factors;  // [queries, kDotBlocks]
  float* folded_least;    // [queries, kDotBlocks]: q . least
};

// If `at` is null, only computes the size.
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
  static_assert(kFloatTokens * sizeof(float) == 2 * kDotTokens,
                "k holds two tiles of bytes, v four floats for each 16 channels and token");
  take(&s.k, uint64_t{kFloatTokens} * s.stride);
  take(&s.v, uint64_t{kFloatTokens} * s.stride);
  take(&s.q_high, queries * s.quads);
  take(&s.q_low, queries * s.quads);
  take(&s.q_high_sums, queries);
  take(&s.q_low_sums, queries);
  take(&s.q_factors, queries);
  take(&s.keys, Max(DotKeyBytes(kind.head_dim), kDotRowQueries * DotSpreadBytes(kind.head_dim)));
  s.spread = reinterpret_cast<int8_t*>(s.keys);
  take(&s.values, Max(DotValueBytes(kind.head_dim), 2 * queries * s.stride));
  s.unsplit = reinterpret_cast<uint8_t*>(s.k);
  s.quantised_keys = at == nullptr ? nullptr : s.unsplit + uint64_t{kDotTokens} * s.stride;
  s.ranges = s.v;
  s.folded_high = reinterpret_cast<int32_t*>(s.values);
  s.folded_low = at == nullptr ? nullptr : s.folded_high + queries * s.quads;
  take(&s.no_sums, queries);
  take(&s.folded_factors, queries * kDotBlocks);
  take(&s.folded_least, queries * kDotBlocks);
  take(&s.w_high, queries * kDotTokens);
  take(&s.w_low, queries * kDotTokens);
  take(&s.w_factors, queries);
  if (bytes != nullptr) *bytes = used;
  return s;
}

}  // namespace arn::cpu
