// Int8Dot with sdot for tiles of few queries over rows of 4 or 2 bits. Values are split while they
// are loaded.
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

// Adds value j of bytes [first, first + 16) of kTokens tokens.
template <uint32_t kBits, uint32_t kQueries, uint32_t kField>
ARN_DOTPROD_INLINE void AddField(const DotQueries& queries, uint32_t query,
                                 const uint8x16_t (&bytes)[kTokens], uint32_t first,
                                 uint32_t row_bytes, TokenSums<kQueries>* sums) {
  int8x16_t row[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) row[t] = ValueOf<kBits, kField>(bytes[t]);
  for (uint32_t q = 0; q < kQueries; ++q) {
    const size_t at = (query + q) * queries.stride + (kField * row_bytes + first) / 4;
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

template <uint32_t kBits, uint32_t kQueries>
ARN_DOTPROD void ScoreTokens(const DotQueries& queries, uint32_t query, const int8_t* const* strips,
                             uint32_t n, uint32_t row_bytes, float* out) {
  out += size_t{query} * kDotTokens;
  for (uint32_t t = 0; t < n; t += kTokens) {
    const int8_t* rows = DotRow(strips, t, row_bytes);
    TokenSums<kQueries> sums = {};
    for (uint32_t first = 0; first < row_bytes; first += kVectorBytes) {
      uint8x16_t bytes[kTokens];
      for (uint32_t i = 0; i < kTokens; ++i) {
        bytes[i] = vreinterpretq_u8_s8(vld1q_s8(rows + size_t{i} * row_bytes + first));
      }
      AddField<kBits, kQueries, 0>(queries, query, bytes, first, row_bytes, &sums);
      AddField<kBits, kQueries, 1>(queries, query, bytes, first, row_bytes, &sums);
      if constexpr (kBits == 2) {
        AddField<kBits, kQueries, 2>(queries, query, bytes, first, row_bytes, &sums);
        AddField<kBits, kQueries, 3>(queries, query, bytes, first, row_bytes, &sums);
      }
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      StoreScores(AddLanes(sums[q][0]), AddLanes(sums[q][1]), out + q * kDotTokens + t);
    }
  }
}

// Tile sizes: these sums stay in registers.
constexpr uint32_t kChannels = 8;
constexpr uint32_t kWeighed = 4;

// Per plane: sums over tokens of kChannels channels.
template <uint32_t kQueries>
using ChannelSums = int32x4_t[kQueries][2][2];

// Adds value kField of kChannels bytes of quad kQuad of a block; its weights are in that lane.
template <uint32_t kBits, uint32_t kField, uint32_t kQuad, uint32_t kQueries>
ARN_DOTPROD_INLINE void AddQuad(const int8x16_t (&w)[kQueries][2], const int8_t* rows,
                                uint32_t row_bytes, ChannelSums<kQueries>* sums) {
  rows += size_t{4} * (kQuad % 2) * row_bytes;
  uint8x16_t r[4];
  for (uint32_t t = 0; t < 4; ++t) {
    r[t] =
        vreinterpretq_u8_s8(LoadRow<true, kChannels>(rows + size_t{t} * row_bytes, 0, row_bytes));
  }
  const auto a = vreinterpretq_s16_s8(ValueOf<kBits, kField>(vzip1q_u8(r[0], r[1])));
  const auto b = vreinterpretq_s16_s8(ValueOf<kBits, kField>(vzip1q_u8(r[2], r[3])));
  const int8x16_t v[2] = {vreinterpretq_s8_s16(vzip1q_s16(a, b)),
                          vreinterpretq_s8_s16(vzip2q_s16(a, b))};
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t plane = 0; plane < 2; ++plane) {
      for (uint32_t i = 0; i < 2; ++i) {
        int32x4_t& sum = (*sums)[q][plane][i];
        sum = vdotq_laneq_s32(sum, v[i], w[q][plane], kQuad);
      }
    }
  }
}

// Adds value kField of bytes [first, first + kChannels).
template <uint32_t kBits, uint32_t kField, uint32_t kQueries>
ARN_DOTPROD void AddChannels(const DotWeights& weights, uint32_t query, const int8_t* const* strips,
                             uint32_t n_blocks, uint32_t first, uint32_t row_bytes, size_t stride,
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
    AddQuad<kBits, kField, 0, kQueries>(w, strips[0] + first, row_bytes, &sums);
    AddQuad<kBits, kField, 1, kQueries>(w, strips[0] + first, row_bytes, &sums);
    AddQuad<kBits, kField, 2, kQueries>(w, strips[1] + first, row_bytes, &sums);
    AddQuad<kBits, kField, 3, kQueries>(w, strips[1] + first, row_bytes, &sums);
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    float* to = out + (query + q) * stride;
    for (uint32_t i = 0; i < 2; ++i) {
      AddSums(sums[q][0][i], sums[q][1][i], weights.factors[query + q], to + i * kLanes);
    }
  }
}

// By value of a byte.
template <uint32_t kBits, uint32_t kQueries>
constexpr decltype(&AddChannels<kBits, 0, kQueries>) kAddField[] = {
    AddChannels<kBits, 0, kQueries>, AddChannels<kBits, 1, kQueries>,
    AddChannels<kBits, kBits == 2 ? 2 : 0, kQueries>,
    AddChannels<kBits, kBits == 2 ? 3 : 1, kQueries>};

template <uint32_t kBits>
void ScoreRowsOf(const DotQueries& queries, const int8_t* const* strips, uint32_t n,
                 uint32_t row_bytes, float* out) {
  constexpr decltype(&ScoreTokens<kBits, 1>) kScore[kScored] = {
      ScoreTokens<kBits, 1>, ScoreTokens<kBits, 2>, ScoreTokens<kBits, 3>};
  for (uint32_t q = 0; q < queries.n; q += kScored) {
    kScore[Min(queries.n - q, kScored) - 1](queries, q, strips, n, row_bytes, out);
  }
}

template <uint32_t kBits>
void AddRowsOf(const DotWeights& weights, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t row_bytes, uint32_t channel, uint32_t n_channels, size_t stride,
               float* sums) {
  constexpr decltype(&kAddField<kBits, 1>) kAdd[kWeighed] = {
      &kAddField<kBits, 1>, &kAddField<kBits, 2>, &kAddField<kBits, 3>, &kAddField<kBits, 4>};
  for (uint32_t i = 0; i < n_channels; i += kChannels) {
    const uint32_t field = (channel + i) / row_bytes, first = (channel + i) % row_bytes;
    for (uint32_t q = 0; q < weights.n; q += kWeighed) {
      const auto& add = *kAdd[Min(weights.n - q, kWeighed) - 1];
      add[field](weights, q, strips, n_blocks, first, row_bytes, stride, sums + i);
    }
  }
}

}  // namespace

void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out) {
  const auto score = bits == 4 ? ScoreRowsOf<4> : ScoreRowsOf<2>;
  score(queries, strips, n_blocks * kDotBlock, row_bytes, out);
}

void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums) {
  const auto add = bits == 4 ? AddRowsOf<4> : AddRowsOf<2>;
  add(weights, strips, static_cast<uint32_t>(CeilDiv(n_quads, kDotBlock / 4)), row_bytes, channel,
      n_channels, stride, sums);
}

}  // namespace arn::cpu::dotprod
#endif
