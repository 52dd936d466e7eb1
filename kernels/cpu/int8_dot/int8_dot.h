// Products of int8 keys and values with queries and weights of 16 bits, for CPUs that add up four
// or eight products of bytes at once (AVX512-VNNI, NEON dotprod and i8mm, SVE with i8mm). A 16-bit
// number is two bytes, so a product with it is two products of bytes: x = 256 * high + low. Queries
// and weights keep 15 or 16 bits, and what reaches the softmax differs from f32 arithmetic over the
// same cache by its rounding alone.
//
// The instructions take four (eight) bytes that lie together. A tile of tokens is therefore copied
// into one of two orders first, which all queries of a task then use. Of four:
//   keys    [blocks of 16 tokens][quads of channels][16 tokens][4 channels]
//   values  [quads of tokens][channels][4 tokens]
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/arith.h"

namespace arn::cpu {

// Tokens that a tile has at most, and tokens of a block of keys.
inline constexpr uint32_t kDotTokens = 64;
inline constexpr uint32_t kDotBlock = 16;

// What is multiplied without a copy of the tile: 32767 * 255 * kDotRowDim stays below 2^31, so
// scores of whole 16-bit queries are i32.
inline constexpr uint32_t kDotRowDim = 256;
inline constexpr uint32_t kDotRowQueries = 8;

// Token t's row of head_dim values, where `strips` has those of kKvStrip tokens each: t / kKvStrip
// is the strip, in which rows follow one another.
inline const int8_t* DotRow(const int8_t* const* strips, uint32_t t, size_t head_dim) {
  return strips[t / kKvStrip] + t % kKvStrip * head_dim;
}

constexpr uint32_t DotQuads(uint32_t n) { return static_cast<uint32_t>(CeilDiv(n, 4)); }
// Channels of a tile of values: whole vectors of 16 lanes.
constexpr uint32_t DotValueWidth(uint32_t head_dim) {
  return static_cast<uint32_t>(AlignUp(head_dim, kDotBlock));
}
// What packed tiles take at most.
constexpr uint64_t DotKeyBytes(uint32_t head_dim) {
  return uint64_t{kDotTokens} * AlignUp(head_dim, 8);
}
constexpr uint64_t DotValueBytes(uint32_t head_dim) {
  return uint64_t{kDotTokens} * DotValueWidth(head_dim);
}

// Room for a query that was spread for score_rows. VNNI takes all of it: of each 16 channels the
// high bytes four times, then the low ones.
constexpr uint64_t DotSpreadBytes(uint32_t head_dim) {
  return uint64_t{2} * 4 * DotValueWidth(head_dim);
}

// n queries: of query i the quads at [i * stride, + DotQuads(head_dim)), zeros behind head_dim.
// Their numbers are signed: high and low both in [-128, 127].
struct DotQueries {
  const int32_t* high;
  const int32_t* low;
  const int32_t* high_sums;  // [n]: of a query's bytes
  const int32_t* low_sums;
  size_t stride;
  uint32_t n;
  int8_t* spread;  // [n, DotSpreadBytes]: of score_rows alone
};

// Weights of n queries for the tokens of a tile, one byte each, kDotTokens from query to query;
// zeros behind the last token, up to a whole block.
struct DotWeights {
  const uint8_t* high;
  const uint8_t* low;
  const float* factors;  // [n]: of the 16-bit numbers
  uint32_t n;
};

struct Int8Dot {
  // The rows of n <= kDotTokens tokens (DotRow), which are there for whole blocks: behind the last
  // token they may hold anything.
  void (*pack_keys)(const int8_t* const* strips, uint32_t n_blocks, uint32_t head_dim,
                    uint8_t* out);
  void (*pack_values)(const int8_t* const* strips, uint32_t n_quads, uint32_t head_dim,
                      uint8_t* out);
  // out[query * kDotTokens + token]: the sums of products, rounded to f32, of all tokens of the
  // first n_blocks blocks.
  void (*scores)(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks,
                 uint32_t head_dim, float* out);
  // sums[query * stride + channel] += factor * (the sum over the tokens of n_quads quads). stride
  // is at least DotValueWidth(head_dim), and channels behind head_dim may become anything finite.
  void (*add_values)(const DotWeights& weights, const uint8_t* values, uint32_t n_quads,
                     uint32_t head_dim, size_t stride, float* sums);
  // The same for at most kDotRowQueries queries and a head_dim of at most kDotRowDim, from the rows
  // themselves and from queries that were spread (a null spread_queries: from queries as they are).
  // Null: only copies are multiplied.
  void (*spread_queries)(const DotQueries& queries, uint32_t head_dim);
  void (*score_rows)(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t head_dim, float* out);
  void (*add_value_rows)(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                         uint32_t head_dim, size_t stride, float* sums);
  // The largest weight, and whether its bytes are signed as those of queries.
  int32_t weight_max;
  bool weights_signed;
  // Bytes of a row that are multiplied at once; a row of packed keys is a multiple of it.
  uint32_t unit;

  size_t KeyBlockBytes(uint32_t head_dim) const { return kDotBlock * AlignUp(head_dim, unit); }
};

// Null when the CPU has no such instructions.
const Int8Dot* ChooseInt8Dot();
// Each null when it is not compiled for this architecture, or the CPU has no such instructions.
const Int8Dot* Int8DotVnni();
const Int8Dot* Int8DotDotprod();
const Int8Dot* Int8DotI8mm();
const Int8Dot* Int8DotSve();  // vectors of 256 bits

}  // namespace arn::cpu
