// Int8Dot with smmla for tiles of few queries over rows of 4 or 2 bits. Values are split after rows
// are paired.
#include "kernels/cpu/int8_dot/mmla.h"

#if defined(ARN_HAS_MMLA)

namespace arn::cpu::mmla {
namespace {

constexpr uint32_t kLanes = 4;        // i32 or f32 lanes per vector
constexpr uint32_t kTokens = kEight;  // sums of up to four queries stay in registers
constexpr uint32_t kGroup = 4;        // queries per pass

// Per pair of tokens (or channels): two sums of each plane.
template <uint32_t kQueries>
using Sums = int32x4_t[kQueries][4];

// Sizes of one query's planes, in pairs of rows of eight bytes.
constexpr uint32_t kQueryBytes = 2 * kDotRowDim;
constexpr uint32_t kWeightBytes = 2 * kDotTokens;

// Adds value kField of bytes [first, first + 16) of the tokens of a strip. bytes[p] has the first
// and the second eight bytes of tokens 2 p and 2 p + 1.
template <uint32_t kBits, uint32_t kQueries, uint32_t kField>
ARN_I8MM_INLINE void AddField(const int8_t* planes, const uint8x16_t (&bytes)[kTokens / 2][2],
                              uint32_t first, uint32_t row_bytes, Sums<kQueries>* sums) {
  planes += size_t{2} * (kField * row_bytes + first);
  int8x16_t x[kQueries][2];
  for (uint32_t q = 0; q < kQueries; ++q) {
    x[q][0] = vld1q_s8(planes + q * kQueryBytes);
    x[q][1] = vld1q_s8(planes + q * kQueryBytes + kPairBytes);
  }
  for (uint32_t p = 0; p < kTokens / 2; ++p) {
    const int8x16_t pairs[2] = {ValueOf<kBits, kField>(bytes[p][0]),
                                ValueOf<kBits, kField>(bytes[p][1])};
    for (uint32_t q = 0; q < kQueries; ++q) {
      (*sums)[q][p] = vmmlaq_s32((*sums)[q][p], x[q][0], pairs[0]);
      (*sums)[q][p] = vmmlaq_s32((*sums)[q][p], x[q][1], pairs[1]);
    }
  }
}

template <uint32_t kBits, uint32_t kQueries>
ARN_I8MM void ScoreStrips(const int8_t* planes, const int8_t* const* strips, uint32_t n_strips,
                          uint32_t row_bytes, float* out) {
  for (uint32_t i = 0; i < n_strips; ++i, out += kTokens) {
    Sums<kQueries> sums = {};
    for (uint32_t first = 0; first < row_bytes; first += kPairBytes) {
      uint8x16_t bytes[kTokens / 2][2];
      for (uint32_t p = 0; p < kTokens / 2; ++p) {
        const int8_t* row = strips[i] + size_t{2 * p} * row_bytes + first;
        const int8x16_t a = vld1q_s8(row), b = vld1q_s8(row + row_bytes);
        bytes[p][0] = vreinterpretq_u8_s8(FirstHalves(a, b));
        bytes[p][1] = vreinterpretq_u8_s8(SecondHalves(a, b));
      }
      AddField<kBits, kQueries, 0>(planes, bytes, first, row_bytes, &sums);
      AddField<kBits, kQueries, 1>(planes, bytes, first, row_bytes, &sums);
      if constexpr (kBits == 2) {
        AddField<kBits, kQueries, 2>(planes, bytes, first, row_bytes, &sums);
        AddField<kBits, kQueries, 3>(planes, bytes, first, row_bytes, &sums);
      }
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      float* scores = out + q * kDotTokens;
      StorePairs(sums[q][0], sums[q][1], scores);
      StorePairs(sums[q][2], sums[q][3], scores + kLanes);
    }
  }
}

// Loads value kField of bytes [first, first + 8) of the eight tokens of a strip as pairs of
// channels.
template <uint32_t kBits, uint32_t kField>
ARN_I8MM_INLINE void PairValues(const int8_t* strip, uint32_t first, uint32_t row_bytes,
                                int8x16_t (&pairs)[4]) {
  int16x8_t two[4];  // two tokens of each channel
  for (uint32_t i = 0; i < 4; ++i) {
    const int8_t* row = strip + size_t{2 * i} * row_bytes;
    const int8x16_t even = LoadRow<true, kEight>(row, first, row_bytes);
    const int8x16_t odd = LoadRow<true, kEight>(row + row_bytes, first, row_bytes);
    const uint8x16_t bytes = vreinterpretq_u8_s8(vzip1q_s8(even, odd));
    two[i] = vreinterpretq_s16_s8(ValueOf<kBits, kField>(bytes));
  }
  PairTokens(two, pairs);
}

// Adds value kField of bytes [first, first + 8) of `eights` strips.
template <uint32_t kBits, uint32_t kField, uint32_t kQueries>
ARN_I8MM void AddEight(const int8_t* planes, const float* factors, const int8_t* const* strips,
                       uint32_t eights, uint32_t first, uint32_t row_bytes, size_t stride,
                       float* out) {
  Sums<kQueries> sums = {};
  for (uint32_t i = 0; i < eights; ++i) {
    int8x16_t pairs[4];
    PairValues<kBits, kField>(strips[i], first, row_bytes, pairs);
    for (uint32_t q = 0; q < kQueries; ++q) {
      const int8x16_t x = vld1q_s8(planes + q * kWeightBytes + i * kPairBytes);
      for (uint32_t p = 0; p < 4; ++p) sums[q][p] = vmmlaq_s32(sums[q][p], x, pairs[p]);
    }
  }
  for (uint32_t q = 0; q < kQueries; ++q, out += stride) {
    AddPairs(sums[q][0], sums[q][1], factors[q], out);
    AddPairs(sums[q][2], sums[q][3], factors[q], out + kLanes);
  }
}

// By value of a byte.
template <uint32_t kBits, uint32_t kQueries>
constexpr decltype(&AddEight<kBits, 0, kQueries>) kAddField[] = {
    AddEight<kBits, 0, kQueries>, AddEight<kBits, 1, kQueries>,
    AddEight<kBits, kBits == 2 ? 2 : 0, kQueries>, AddEight<kBits, kBits == 2 ? 3 : 1, kQueries>};

template <uint32_t kBits>
void ScoreRowsOf(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                 uint32_t row_bytes, float* out) {
  constexpr decltype(&ScoreStrips<kBits, 1>) kScore[kGroup] = {
      ScoreStrips<kBits, 1>, ScoreStrips<kBits, 2>, ScoreStrips<kBits, 3>, ScoreStrips<kBits, 4>};
  alignas(kPairBytes) int8_t planes[kGroup * kQueryBytes];
  for (uint32_t q = 0; q < queries.n; q += kGroup) {
    const uint32_t n = Min(queries.n - q, kGroup);
    for (uint32_t i = 0; i < n; ++i) {
      const size_t at = (q + i) * queries.stride;
      PairPlanes(queries.high + at, queries.low + at, Eights(row_bytes * 8 / kBits),
                 planes + i * kQueryBytes);
    }
    kScore[n - 1](planes, strips, n_blocks * (kDotBlock / kKvStrip), row_bytes,
                  out + q * kDotTokens);
  }
}

template <uint32_t kBits>
void AddRowsOf(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
               uint32_t row_bytes, uint32_t channel, uint32_t n_channels, size_t stride,
               float* sums) {
  constexpr decltype(&kAddField<kBits, 1>) kAdd[kGroup] = {
      &kAddField<kBits, 1>, &kAddField<kBits, 2>, &kAddField<kBits, 3>, &kAddField<kBits, 4>};
  const uint32_t eights = Eights(4 * n_quads);
  alignas(kPairBytes) int8_t planes[kGroup * kWeightBytes];
  for (uint32_t q = 0; q < weights.n; q += kGroup, sums += kGroup * stride) {
    const uint32_t n = Min(weights.n - q, kGroup);
    for (uint32_t i = 0; i < n; ++i) {
      const size_t at = (q + i) * kDotTokens;
      PairPlanes(weights.high + at, weights.low + at, eights, planes + i * kWeightBytes);
    }
    for (uint32_t i = 0; i < n_channels; i += kEight) {
      const uint32_t field = (channel + i) / row_bytes, first = (channel + i) % row_bytes;
      (*kAdd[n - 1])[field](planes, weights.factors + q, strips, eights, first, row_bytes, stride,
                            sums + i);
    }
  }
}

}  // namespace

void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out) {
  const auto score = bits == 4 ? ScoreRowsOf<4> : ScoreRowsOf<2>;
  score(queries, strips, n_blocks, row_bytes, out);
}

void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums) {
  const auto add = bits == 4 ? AddRowsOf<4> : AddRowsOf<2>;
  add(weights, strips, n_quads, row_bytes, channel, n_channels, stride, sums);
}

}  // namespace arn::cpu::mmla
#endif
