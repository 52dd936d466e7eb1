// Int8Dot with sdot, without packing: for tiles with few queries.
#include "kernels/cpu/int8_dot/dotprod.h"

#if defined(ARN_HAS_DOTPROD) && !defined(ARN_SMALL_CODE)

namespace arn::cpu::dotprod {
namespace {

// Tile sizes: these sums stay in registers.
constexpr uint32_t kTokens = 4;
constexpr uint32_t kScored = 3;

// Per plane and token: four partial sums, over the channels with equal (channel % 16) / 4.
template <uint32_t kQueries>
using TokenSums = int32x4_t[kQueries][2][kTokens];

// Adds 16 channels (fewer at the end of a row) of kTokens tokens; the queries are zero-padded.
template <uint32_t kQueries, bool kWhole>
ARN_DOTPROD_INLINE void AddProducts(const DotQueries& queries, uint32_t query, const int8_t* rows,
                                    uint32_t first, uint32_t dim, TokenSums<kQueries>* sums) {
  int8x16_t row[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) {
    row[t] = LoadRow<kWhole>(rows + size_t{t} * dim, first, dim);
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    const size_t at = (query + q) * queries.stride + first / 4;
    const int8x16_t planes[2] = {vreinterpretq_s8_s32(vld1q_s32(queries.high + at)),
                                 vreinterpretq_s8_s32(vld1q_s32(queries.low + at))};
    for (uint32_t plane = 0; plane < 2; ++plane) {
      for (uint32_t t = 0; t < kTokens; ++t) {
        int32x4_t& sum = (*sums)[q][plane][t];
        sum = vdotq_s32(sum, row[t], planes[plane]);
      }
    }
  }
}

ARN_DOTPROD_INLINE int32x4_t AddLanes(const int32x4_t (&sums)[kTokens]) {
  return vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
}

template <uint32_t kQueries>
ARN_DOTPROD void ScoreTokens(const DotQueries& queries, uint32_t query, const int8_t* const* strips,
                             uint32_t n, uint32_t dim, float* out) {
  out += size_t{query} * kDotTokens;
  for (uint32_t t = 0; t < n; t += kTokens) {
    const int8_t* rows = DotRow(strips, t, dim);
    TokenSums<kQueries> sums = {};
    uint32_t first = 0;
    for (; first + kVectorBytes <= dim; first += kVectorBytes) {
      AddProducts<kQueries, true>(queries, query, rows, first, dim, &sums);
    }
    if (first < dim) AddProducts<kQueries, false>(queries, query, rows, first, dim, &sums);
    for (uint32_t q = 0; q < kQueries; ++q) {
      StoreScores(AddLanes(sums[q][0]), AddLanes(sums[q][1]), out + q * kDotTokens + t);
    }
  }
}

// Tile sizes: these sums stay in registers.
constexpr uint32_t kChannels = 8;
constexpr uint32_t kWeighed = 4;

// Loads channels [first, first + 8) of four tokens as quads of tokens, four channels per vector.
template <bool kWhole>
ARN_DOTPROD_INLINE void LoadQuads(const int8_t* rows, uint32_t first, uint32_t dim,
                                  int8x16_t (&quads)[2]) {
  int8x16_t row[4];
  for (uint32_t t = 0; t < 4; ++t) {
    row[t] = LoadRow<kWhole, kChannels>(rows + size_t{t} * dim, first, dim);
  }
  const int16x8_t a = vreinterpretq_s16_s8(vzip1q_s8(row[0], row[1]));
  const int16x8_t b = vreinterpretq_s16_s8(vzip1q_s8(row[2], row[3]));
  quads[0] = vreinterpretq_s8_s16(vzip1q_s16(a, b));
  quads[1] = vreinterpretq_s8_s16(vzip2q_s16(a, b));
}

// Per plane: sums over tokens of kChannels channels.
template <uint32_t kQueries>
using ChannelSums = int32x4_t[kQueries][2][2];

// Adds quad kQuad of a block; its weights are in that lane.
template <uint32_t kQuad, uint32_t kQueries, bool kWhole>
ARN_DOTPROD_INLINE void AddQuad(const int8x16_t (&w)[kQueries][2], const int8_t* const* strips,
                                uint32_t first, uint32_t dim, ChannelSums<kQueries>* sums) {
  int8x16_t v[2];
  LoadQuads<kWhole>(DotRow(strips, 4 * kQuad, dim), first, dim, v);
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t plane = 0; plane < 2; ++plane) {
      for (uint32_t i = 0; i < 2; ++i) {
        int32x4_t& sum = (*sums)[q][plane][i];
        sum = vdotq_laneq_s32(sum, v[i], w[q][plane], kQuad);
      }
    }
  }
}

template <uint32_t kQueries, bool kWhole>
ARN_DOTPROD void AddChannels(const DotWeights& weights, uint32_t query, const int8_t* const* strips,
                             uint32_t n_blocks, uint32_t first, uint32_t dim, size_t stride,
                             float* out) {
  ChannelSums<kQueries> sums = {};
  // After the last token, rows up to a whole block are readable and have zero weights.
  for (uint32_t block = 0; block < n_blocks; ++block, strips += kDotBlock / kKvStrip) {
    int8x16_t w[kQueries][2];
    for (uint32_t q = 0; q < kQueries; ++q) {
      const size_t at = size_t{query + q} * kDotTokens + block * kDotBlock;
      w[q][0] = vreinterpretq_s8_u8(vld1q_u8(weights.high + at));
      w[q][1] = vreinterpretq_s8_u8(vld1q_u8(weights.low + at));
    }
    AddQuad<0, kQueries, kWhole>(w, strips, first, dim, &sums);
    AddQuad<1, kQueries, kWhole>(w, strips, first, dim, &sums);
    AddQuad<2, kQueries, kWhole>(w, strips, first, dim, &sums);
    AddQuad<3, kQueries, kWhole>(w, strips, first, dim, &sums);
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    float* to = out + (query + q) * stride + first;
    for (uint32_t i = 0; i < 2; ++i) {
      AddSums(sums[q][0][i], sums[q][1][i], weights.factors[query + q], to + i * kLanes);
    }
  }
}

}  // namespace

void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out) {
  constexpr decltype(&ScoreTokens<1>) kScore[kScored] = {ScoreTokens<1>, ScoreTokens<2>,
                                                         ScoreTokens<3>};
  for (uint32_t q = 0; q < queries.n; q += kScored) {
    kScore[Min(queries.n - q, kScored) - 1](queries, q, strips, n_blocks * kDotBlock, dim, out);
  }
}

void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums) {
  constexpr decltype(&AddChannels<1, true>) kAdd[kWeighed] = {
      AddChannels<1, true>, AddChannels<2, true>, AddChannels<3, true>, AddChannels<4, true>};
  const auto n_blocks = static_cast<uint32_t>(CeilDiv(n_quads, kDotBlock / 4));
  uint32_t first = 0;
  for (; first + kChannels <= dim; first += kChannels) {
    for (uint32_t q = 0; q < weights.n; q += kWeighed) {
      kAdd[Min(weights.n - q, kWeighed) - 1](weights, q, strips, n_blocks, first, dim, stride,
                                             sums);
    }
  }
  for (uint32_t q = 0; first < dim && q < weights.n; ++q) {
    AddChannels<1, false>(weights, q, strips, n_blocks, first, dim, stride, sums);
  }
}

}  // namespace arn::cpu::dotprod
#endif
