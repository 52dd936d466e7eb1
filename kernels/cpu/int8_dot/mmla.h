// Code shared by the files of Int8Dot with ARM's byte matrix multiply (i8mm: smmla multiplies two
// rows of eight bytes by two others). One operand holds the high bytes and the low bytes of a query
// (or of a query's weights), so that one instruction serves both planes. The other holds two
// tokens, or two channels. A tile is stored as pairs of such rows, 16 bytes per pair, eight pairs
// per step:
//   keys    [blocks of 16 tokens][eights of channels][8 pairs of tokens][2][8 channels]
//   values  [eights of tokens][eights of channels][4 pairs of channels][2][8 tokens]
#pragma once

#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/int8_dot/neon.h"

// Clang before 16 has these intrinsics only in files compiled for i8mm. Omitted from the smallest
// library.
#if defined(__aarch64__) && !defined(ARN_SMALL_CODE) && \
    (!defined(__clang__) || __clang_major__ >= 16)
#define ARN_HAS_MMLA

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/arith.h"

#define ARN_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))
#define ARN_I8MM_INLINE ARN_I8MM __attribute__((always_inline)) inline

namespace arn::cpu::mmla {

constexpr uint32_t kEight = 8;
constexpr uint32_t kPairBytes = 2 * kEight;
constexpr uint32_t kPairs = kDotBlock / 2;
constexpr uint32_t kStepBytes = kPairs * kPairBytes;
// Queries that share each load of the tile.
constexpr uint32_t kSharing = 2;

constexpr uint32_t Eights(uint32_t n) { return static_cast<uint32_t>(CeilDiv(n, kEight)); }

// Implement the Int8Dot functions of the same names on all CPUs with smmla.
void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out);
void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim, uint8_t* out);
void SpreadQueries(const DotQueries& queries, uint32_t dim);
void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out);
void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums);
void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out);
void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums);

// Interleaves the two planes of a query (or of its weights) in groups of eight bytes: high, low.
inline void PairPlanes(const void* high, const void* low, uint32_t eights, int8_t* out) {
  const auto* h = static_cast<const int8_t*>(high);
  const auto* l = static_cast<const int8_t*>(low);
  for (uint32_t i = 0; i < eights; ++i) {
    const int8x16_t pair = vcombine_s8(vld1_s8(h + i * kEight), vld1_s8(l + i * kEight));
    vst1q_s8(out + i * kPairBytes, pair);
  }
}
struct Planes {
  alignas(kPairBytes) int8_t bytes[kSharing][2 * kMaxHeadDim];
};

ARN_NEON_INLINE int8x16_t FirstHalves(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
ARN_NEON_INLINE int8x16_t SecondHalves(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

// Turns pairs of tokens of eight channels into pairs of channels of eight tokens.
ARN_NEON_INLINE void PairTokens(const int16x8_t (&two)[4], int8x16_t (&pairs)[4]) {
  int32x4_t four[2][2];  // four tokens of four channels each
  for (uint32_t i = 0; i < 2; ++i) {
    four[i][0] = vreinterpretq_s32_s16(vzip1q_s16(two[2 * i], two[2 * i + 1]));
    four[i][1] = vreinterpretq_s32_s16(vzip2q_s16(two[2 * i], two[2 * i + 1]));
  }
  for (uint32_t i = 0; i < 2; ++i) {
    pairs[2 * i] = vreinterpretq_s8_s32(vzip1q_s32(four[0][i], four[1][i]));
    pairs[2 * i + 1] = vreinterpretq_s8_s32(vzip2q_s32(four[0][i], four[1][i]));
  }
}

// Loads channels [first, first + 8) of the eight tokens of a strip as pairs of channels.
template <bool kWhole>
ARN_NEON_INLINE void PairChannels(const int8_t* strip, uint32_t first, uint32_t dim,
                                  int8x16_t (&pairs)[4]) {
  int16x8_t two[4];  // two tokens of each channel
  for (uint32_t i = 0; i < 4; ++i) {
    const int8_t* row = strip + size_t{2 * i} * dim;
    const int8x16_t even = LoadRow<kWhole, kEight>(row, first, dim);
    const int8x16_t odd = LoadRow<kWhole, kEight>(row + dim, first, dim);
    two[i] = vreinterpretq_s16_s8(vzip1q_s8(even, odd));
  }
  PairTokens(two, pairs);
}

// Each accumulator holds two rows' sums, alternating high and low plane. Highs and Lows collect one
// plane from two accumulators.
ARN_NEON_INLINE int32x4_t Highs(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
ARN_NEON_INLINE int32x4_t Lows(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

// Store the scores of four tokens, and add the sums of four channels; a and b hold two each.
ARN_NEON_INLINE void StorePairs(int32x4_t a, int32x4_t b, float* out) {
  StoreScores(Highs(a, b), Lows(a, b), out);
}
ARN_NEON_INLINE void AddPairs(int32x4_t a, int32x4_t b, float factor, float* out) {
  AddSums(Highs(a, b), Lows(a, b), factor, out);
}

// Steps [n], `stride` bytes apart.
struct Steps {
  const uint8_t* at;
  size_t stride;
  uint32_t n;
};

// Int8Dot's scores and add_values, generic over the kernel that accumulates steps:
//   Kernel::Scores(n, planes, steps, out)
//     out[query * kDotTokens + token] for n queries and 16 tokens
//   Kernel::AddValues(n, planes, steps, factors, stride, out)
//     out[query * stride + channel] += factors[query] * sum, for n queries and 16 channels
template <typename Kernel>
void Scores(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks, uint32_t dim,
            float* out) {
  const uint32_t eights = Eights(dim);
  Planes planes;
  for (uint32_t q = 0; q < queries.n; q += kSharing) {
    const uint32_t n = Min(queries.n - q, kSharing);
    for (uint32_t i = 0; i < n; ++i) {
      const size_t at = (q + i) * queries.stride;
      PairPlanes(queries.high + at, queries.low + at, eights, planes.bytes[i]);
    }
    for (uint32_t block = 0; block < n_blocks; ++block) {
      const Steps steps = {keys + size_t{block} * eights * kStepBytes, kStepBytes, eights};
      Kernel::Scores(n, planes, steps, out + q * kDotTokens + block * kDotBlock);
    }
  }
}

template <typename Kernel>
void AddValues(const DotWeights& weights, const uint8_t* values, uint32_t n_quads, uint32_t width,
               uint32_t n_channels, size_t stride, float* sums) {
  const uint32_t eights = Eights(4 * n_quads);
  Planes planes;
  for (uint32_t q = 0; q < weights.n; q += kSharing) {
    const uint32_t n = Min(weights.n - q, kSharing);
    for (uint32_t i = 0; i < n; ++i) {
      const size_t at = (q + i) * kDotTokens;
      PairPlanes(weights.high + at, weights.low + at, eights, planes.bytes[i]);
    }
    for (uint32_t channel = 0; channel < n_channels; channel += kDotBlock) {
      const Steps steps = {values + channel * kEight, size_t{width} * kEight, eights};
      Kernel::AddValues(n, planes, steps, weights.factors + q, stride, sums + q * stride + channel);
    }
  }
}

template <typename Kernel>
constexpr Int8Dot Table() {
  return {.pack_keys = PackKeys,
          .pack_values = PackValues,
          .scores = Scores<Kernel>,
          .add_values = AddValues<Kernel>,
          .spread_queries = SpreadQueries,
          .score_rows = ScoreRows,
          .add_value_rows = AddValueRows,
          .score_packed_rows = ScorePackedRows,
          .add_packed_value_rows = AddPackedValueRows,
          .weight_max = kNeonWeightMax,
          .weights_signed = true,
          .unit = kEight};
}

}  // namespace arn::cpu::mmla
#endif
