// Dot products of int8 keys and values with 16-bit queries and weights, for CPUs with 4-way or
// 8-way byte dot products (AVX512-VNNI, NEON dotprod and i8mm, SVE with i8mm). A 16-bit number is
// two bytes, x = 256 * high + low, so each dot product is two byte dot products. Other CPUs join
// the bytes and multiply words. Queries and weights keep 15 or 16 bits: scores and outputs differ
// from f32 arithmetic over the same cache only by this rounding.
//
// The instructions take four (eight) contiguous bytes. A tile of tokens is therefore packed first,
// and all queries of a task then use the packed copy. Layouts for four bytes:
//   keys    [blocks of 16 tokens][quads of channels][16 tokens][4 channels]
//   values  [quads of tokens][channels][4 tokens]
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "platform/base/arith.h"

namespace arn::cpu {

// Maximum tokens per tile, and tokens per block of keys.
inline constexpr uint32_t kDotTokens = 64;
inline constexpr uint32_t kDotBlock = 16;
inline constexpr uint32_t kDotBlocks = kDotTokens / kDotBlock;

// Limits for multiplying without packing the tile. 32767 * 255 * kDotRowDim stays below 2^31, so
// scores of whole 16-bit queries fit i32.
inline constexpr uint32_t kDotRowDim = 256;
inline constexpr uint32_t kDotRowQueries = 8;

// Rows of 4 or 2-bit values are multiplied in place if they are whole units of this many bytes.
inline constexpr uint32_t kPackedRowUnit = 16;

// Returns the row of head_dim values of token t. `strips` points to strips of kKvStrip tokens each,
// whose rows are contiguous.
inline const int8_t* DotRow(const int8_t* const* strips, uint32_t t, size_t head_dim) {
  return strips[t / kKvStrip] + t % kKvStrip * head_dim;
}

constexpr uint32_t DotQuads(uint32_t n) { return static_cast<uint32_t>(CeilDiv(n, 4)); }
// Channels of a tile of values, rounded up to whole vectors of 16 lanes.
constexpr uint32_t DotValueWidth(uint32_t head_dim) {
  return static_cast<uint32_t>(AlignUp(head_dim, kDotBlock));
}
// Maximum size of packed tiles.
constexpr uint64_t DotKeyBytes(uint32_t head_dim) {
  return uint64_t{kDotTokens} * AlignUp(head_dim, 8);
}
constexpr uint64_t DotValueBytes(uint32_t head_dim) {
  return uint64_t{kDotTokens} * DotValueWidth(head_dim);
}

// Size of a query prepared by spread_queries for score_rows. VNNI needs all of it: for each 16
// channels the high bytes four times, then the low bytes four times.
constexpr uint64_t DotSpreadBytes(uint32_t head_dim) {
  return uint64_t{2} * 4 * DotValueWidth(head_dim);
}

// n queries. The quads of query i are at [i * stride, + DotQuads(head_dim)), zero-padded after
// head_dim. Values are signed: high and low are both in [-128, 127].
struct DotQueries {
  const int32_t* high;
  const int32_t* low;
  const int32_t* high_sums;  // [n]: sum of a query's bytes, or 0 (Int8Dot::key_bias)
  const int32_t* low_sums;
  size_t stride;
  uint32_t n;
  int8_t* spread;  // [n, DotSpreadBytes]; score_rows only
  // [n, 4 * stride]: 256 * high + low, instead of them; if Int8Dot::packed_takes_words
  const int16_t* words = nullptr;
};

// Weights of n queries for the tokens of a tile: one byte per token and plane, stride kDotTokens
// between queries, zero-padded after the last token to a whole block.
struct DotWeights {
  const uint8_t* high;
  const uint8_t* low;
  const float* factors;  // [n]: scales of the 16-bit weights
  uint32_t n;
  // [n, kDotTokens]: the 16-bit weights, instead of them; if Int8Dot::packed_takes_words
  const int16_t* words = nullptr;
};

struct Int8Dot {
  // Pack the rows of n <= kDotTokens tokens (DotRow). Rows must be readable for whole blocks; rows
  // after the last token may contain anything.
  void (*pack_keys)(const int8_t* const* strips, uint32_t n_blocks, uint32_t head_dim,
                    uint8_t* out) = nullptr;
  void (*pack_values)(const int8_t* const* strips, uint32_t n_quads, uint32_t head_dim,
                      uint8_t* out) = nullptr;
  // out[query * kDotTokens + token] = dot product, rounded to f32, for all tokens of the first
  // n_blocks blocks.
  void (*scores)(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks,
                 uint32_t head_dim, float* out) = nullptr;
  // sums[query * stride + channel] += factor * (sum over the tokens of n_quads quads), for
  // n_channels channels of a tile of `width`. `values` (ValueAt) and `sums` point to the first of
  // these channels, a multiple of 16. width is a multiple of 16. Channels after n_channels, up to a
  // multiple of 16, are overwritten with finite values.
  void (*add_values)(const DotWeights& weights, const uint8_t* values, uint32_t n_quads,
                     uint32_t width, uint32_t n_channels, size_t stride, float* sums) = nullptr;
  // Variants without packing, for at most kDotRowQueries queries and head_dim <= kDotRowDim.
  // score_rows reads queries prepared by spread_queries, or unprepared ones if spread_queries is
  // null.
  // Null: only packed tiles are supported.
  void (*spread_queries)(const DotQueries& queries, uint32_t head_dim) = nullptr;
  void (*score_rows)(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t head_dim, float* out) = nullptr;
  void (*add_value_rows)(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                         uint32_t head_dim, size_t stride, float* sums) = nullptr;
  // The same for rows of values of `bits` (4 or 2) bits, from 0 up, of row_bytes bytes, a multiple
  // of kPackedRowUnit. Value j of byte i is channel j * row_bytes + i. Queries are unprepared.
  // add_packed_value_rows adds channels [channel, channel + n_channels), both multiples of 16;
  // `sums` points to the first of them.
  // Null: not supported.
  void (*score_packed_rows)(const DotQueries& queries, const int8_t* const* strips,
                            uint32_t n_blocks, uint32_t row_bytes, uint32_t bits,
                            float* out) = nullptr;
  void (*add_packed_value_rows)(const DotWeights& weights, const int8_t* const* strips,
                                uint32_t n_quads, uint32_t row_bytes, uint32_t bits,
                                uint32_t channel, uint32_t n_channels, size_t stride,
                                float* sums) = nullptr;
  // Maximum weight, and whether its bytes are signed like those of queries.
  int32_t weight_max = 0;
  bool weights_signed = false;
  // score_packed_rows reads DotQueries::words, and add_packed_value_rows DotWeights::words.
  bool packed_takes_words = false;
  // Bytes of a row per dot product; rows of packed keys are padded to a multiple of it. Packed
  // values keep this many tokens of a channel together.
  uint32_t unit = 0;
  // pack_keys XORs each byte with this, and scores subtracts it by the sums of a query's bytes.
  // Keys without it (4 or 2 bits) are multiplied with sums of 0.
  uint8_t key_bias = 0;

  // Returns the start of a channel in a packed tile of values.
  const uint8_t* ValueAt(const uint8_t* values, uint32_t channel) const {
    return values + size_t{channel} * unit;
  }
  size_t KeyBlockBytes(uint32_t head_dim) const { return kDotBlock * AlignUp(head_dim, unit); }
};

// Returns null if the CPU has none of these instructions.
const Int8Dot* ChooseInt8Dot();
// Return null if not compiled for this architecture, or if the CPU lacks the instructions.
const Int8Dot* Int8DotVnni();
const Int8Dot* Int8DotDotprod();
const Int8Dot* Int8DotI8mm();
const Int8Dot* Int8DotSve();    // vectors of 256 bits
const Int8Dot* Int8DotWords();  // SSE4, AVX2, AVX-512

}  // namespace arn::cpu
