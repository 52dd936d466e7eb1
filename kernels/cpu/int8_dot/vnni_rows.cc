// Int8Dot with AVX512-VNNI, without packing: for tiles with few queries.
#include "kernels/cpu/int8_dot/vnni.h"

#if defined(__x86_64__)

namespace arn::cpu::vnni {
namespace {

// 128-bit parts of a vector.
constexpr uint32_t kParts = 4, kPartChannels = 16;

// Transposes the 128-bit parts of four vectors: part i of vector j becomes part j of vector i.
template <typename Vector>
ARN_VNNI_INLINE void TransposeParts(Vector (&r)[4]) {
  const __m512i a = _mm512_shuffle_i32x4((__m512i)r[0], (__m512i)r[1], 0x44);
  const __m512i b = _mm512_shuffle_i32x4((__m512i)r[0], (__m512i)r[1], 0xee);
  const __m512i c = _mm512_shuffle_i32x4((__m512i)r[2], (__m512i)r[3], 0x44);
  const __m512i d = _mm512_shuffle_i32x4((__m512i)r[2], (__m512i)r[3], 0xee);
  r[0] = (Vector)_mm512_shuffle_i32x4(a, c, 0x88);
  r[1] = (Vector)_mm512_shuffle_i32x4(a, c, 0xdd);
  r[2] = (Vector)_mm512_shuffle_i32x4(b, d, 0x88);
  r[3] = (Vector)_mm512_shuffle_i32x4(b, d, 0xdd);
}

// kWhole: all 64 channels exist.
template <bool kWhole>
ARN_VNNI_INLINE __m512i LoadGroup(const int8_t* row, uint32_t channel, uint32_t dim) {
  return kWhole ? _mm512_loadu_si512(row + channel) : LoadRow(row, channel, dim);
}

ARN_VNNI_INLINE void SpreadPart(const int32_t* quads, int8_t* out) {
  const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quads));
  _mm512_storeu_si512(out, _mm512_broadcast_i32x4(part));
}

// sums[j][q] += dot products of plane kPlane of the queries with eight tokens, over the channels
// from `channel` on. Vector k[j][p] has part p of four tokens.
template <uint32_t kPlane, uint32_t kQueries>
ARN_VNNI_INLINE void AddPlane(const __m512i (&k)[2][kParts], const int8_t* spread,
                              size_t query_bytes, uint32_t n_parts, __m512i (&sums)[2][kQueries]) {
  for (uint32_t p = 0; p < kParts && p < n_parts; ++p) {
    for (uint32_t q = 0; q < kQueries; ++q) {
      const __m512i x =
          _mm512_loadu_si512(spread + q * query_bytes + (2 * p + kPlane) * kVectorBytes);
      for (uint32_t j = 0; j < 2; ++j) AddProducts(k[j][p], x, &sums[j][q]);
    }
  }
}

// Adds channels [channel, channel + 64) of eight tokens: `first`, `first` + 1, and every fourth
// token after each. The high plane's sums times 256 are added first and the low plane accumulates
// onto them: half as many accumulators, and all of them stay in registers.
template <uint32_t kQueries, bool kWhole>
ARN_VNNI_INLINE void AddGroup(const int8_t* spread, size_t query_bytes, const int8_t* const* strips,
                              uint32_t first, uint32_t channel, uint32_t dim,
                              __m512i (&sums)[2][kQueries]) {
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(kKeyBias));
  __m512i k[2][kParts];
  for (uint32_t j = 0; j < 2; ++j) {
    for (uint32_t p = 0; p < kParts; ++p) {
      k[j][p] = _mm512_xor_si512(
          LoadGroup<kWhole>(DotRow(strips, first + j + 4 * p, dim), channel, dim), bias);
    }
    TransposeParts(k[j]);
  }
  const uint32_t n_parts =
      kWhole ? kParts : static_cast<uint32_t>(CeilDiv(dim - channel, kPartChannels));
  spread += 2 * kVectorBytes * (channel / kPartChannels);
  // Keeps GCC from loading all of it before the first group, which spills registers.
  asm("" : "+r"(spread));
  __m512i high[2][kQueries] = {};
  AddPlane<0>(k, spread, query_bytes, n_parts, high);
  for (uint32_t j = 0; j < 2; ++j) {
    for (uint32_t q = 0; q < kQueries; ++q) {
      sums[j][q] = _mm512_add_epi32(sums[j][q], _mm512_slli_epi32(high[j][q], 8));
    }
  }
  AddPlane<1>(k, spread, query_bytes, n_parts, sums);
}

// Scores 16 tokens for kQueries queries. A vector has 16 channels of four tokens, so a query's
// partial sums for one token are the four lanes of a part. Tokens i, i + 4, i + 8 and i + 12 share
// a vector, so that adding lanes leaves the tokens in order.
template <uint32_t kQueries, bool kOneGroup>
ARN_VNNI_INLINE void ScoreBlock(const DotQueries& queries, uint32_t query,
                                const int8_t* const* strips, uint32_t dim, float* out) {
  if (kOneGroup) dim = kVectorBytes;
  const size_t query_bytes = DotSpreadBytes(dim);
  const int8_t* spread = queries.spread + query * query_bytes;
  __m512i pairs[2][kQueries];
  for (uint32_t i = 0; i < 2; ++i) {
    __m512i sums[2][kQueries] = {};
    uint32_t channel = 0;
    do {
      if (kOneGroup || channel + kVectorBytes <= dim) {
        AddGroup<kQueries, true>(spread, query_bytes, strips, 2 * i, channel, dim, sums);
      } else {
        AddGroup<kQueries, false>(spread, query_bytes, strips, 2 * i, channel, dim, sums);
      }
      channel += kVectorBytes;
    } while (!kOneGroup && channel < dim);
    for (uint32_t q = 0; q < kQueries; ++q) {
      pairs[i][q] = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[0][q], sums[1][q]),
                                     _mm512_unpackhi_epi32(sums[0][q], sums[1][q]));
    }
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    const __m512i sum = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[0][q], pairs[1][q]),
                                         _mm512_unpackhi_epi64(pairs[0][q], pairs[1][q]));
    const uint32_t of_bias = static_cast<uint32_t>(kKeyBias) *
                             (static_cast<uint32_t>(queries.high_sums[query + q]) * 256 +
                              static_cast<uint32_t>(queries.low_sums[query + q]));
    _mm512_storeu_ps(out + size_t{query + q} * kDotTokens,
                     _mm512_cvtepi32_ps(
                         _mm512_sub_epi32(sum, _mm512_set1_epi32(static_cast<int32_t>(of_bias)))));
  }
}

template <uint32_t kQueries>
ARN_VNNI void ScoreBlocks(const DotQueries& queries, uint32_t query, const int8_t* const* strips,
                          uint32_t n_blocks, uint32_t dim, float* out) {
  for (uint32_t block = 0; block < n_blocks;
       ++block, strips += kDotBlock / kKvStrip, out += kDotBlock) {
    if (dim == kVectorBytes) {
      ScoreBlock<kQueries, true>(queries, query, strips, dim, out);
    } else {
      ScoreBlock<kQueries, false>(queries, query, strips, dim, out);
    }
  }
}

// Sums vectors [kFirst, kFirst + kVectors) of the four vectors of a group of 64 channels. In each
// part of 16 channels, vector m has the quads of tokens of channels 4 m to 4 m + 3.
template <uint32_t kQueries, uint32_t kFirst, uint32_t kVectors, bool kWhole>
ARN_VNNI_INLINE void SumQuads(const DotWeights& weights, uint32_t query,
                              const int8_t* const* strips, uint32_t n_quads, uint32_t channel,
                              uint32_t dim, __m512 (&out)[kQueries][4]) {
  __m512i high[kQueries][kVectors], low[kQueries][kVectors];
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t m = 0; m < kVectors; ++m) high[q][m] = low[q][m] = _mm512_setzero_si512();
  }
  const uint8_t* from_high = weights.high + size_t{query} * kDotTokens;
  const uint8_t* from_low = weights.low + size_t{query} * kDotTokens;
  for (uint32_t i = 0; i < n_quads; ++i) {
    __m512i r[4];
    for (uint32_t t = 0; t < 4; ++t) {
      r[t] = LoadGroup<kWhole>(DotRow(strips, 4 * i + t, dim), channel, dim);
    }
    __m512i v[kVectors];
    for (uint32_t m = 0; m < kVectors; m += 2) {
      const bool upper = kFirst + m >= 2;
      const __m512i a = upper ? _mm512_unpackhi_epi8(r[0], r[1]) : _mm512_unpacklo_epi8(r[0], r[1]);
      const __m512i b = upper ? _mm512_unpackhi_epi8(r[2], r[3]) : _mm512_unpacklo_epi8(r[2], r[3]);
      v[m] = _mm512_unpacklo_epi16(a, b);
      v[m + 1] = _mm512_unpackhi_epi16(a, b);
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      const __m512i h = Quad(from_high + q * kDotTokens + 4 * i);
      const __m512i l = Quad(from_low + q * kDotTokens + 4 * i);
      for (uint32_t m = 0; m < kVectors; ++m) {
        AddProducts(h, v[m], &high[q][m]);
        AddProducts(l, v[m], &low[q][m]);
      }
    }
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t m = 0; m < kVectors; ++m) {
      out[q][kFirst + m] =
          _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high[q][m], 8), low[q][m]));
    }
  }
}

// Adds channels [channel, channel + 64), fewer at the end of a row.
template <uint32_t kQueries, bool kWhole>
ARN_VNNI_INLINE void AddChannels(const DotWeights& weights, uint32_t query,
                                 const int8_t* const* strips, uint32_t n_quads, uint32_t channel,
                                 uint32_t dim, size_t stride, float* sums) {
  __m512 sum[kQueries][4];
  // Split so that the sums stay in registers.
  if constexpr (kQueries <= 2) {
    SumQuads<kQueries, 0, 4, kWhole>(weights, query, strips, n_quads, channel, dim, sum);
  } else {
    SumQuads<kQueries, 0, 2, kWhole>(weights, query, strips, n_quads, channel, dim, sum);
    SumQuads<kQueries, 2, 2, kWhole>(weights, query, strips, n_quads, channel, dim, sum);
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    TransposeParts(sum[q]);
    const __m512 factor = _mm512_set1_ps(weights.factors[query + q]);
    float* to = sums + (query + q) * stride + channel;
    for (uint32_t p = 0; p < 4; ++p, to += kLanes) {
      if (!kWhole && channel + p * kLanes >= dim) break;
      _mm512_storeu_ps(to, _mm512_fmadd_ps(sum[q][p], factor, _mm512_loadu_ps(to)));
    }
  }
}

template <uint32_t kQueries>
ARN_VNNI void AddQueries(const DotWeights& weights, uint32_t query, const int8_t* const* strips,
                         uint32_t n_quads, uint32_t dim, size_t stride, float* sums) {
  uint32_t channel = 0;
  for (; channel + kVectorBytes <= dim; channel += kVectorBytes) {
    AddChannels<kQueries, true>(weights, query, strips, n_quads, channel, dim, stride, sums);
  }
  if (channel < dim) {
    AddChannels<kQueries, false>(weights, query, strips, n_quads, channel, dim, stride, sums);
  }
}

}  // namespace

ARN_VNNI void SpreadQueries(const DotQueries& queries, uint32_t dim) {
  int8_t* out = queries.spread;
  for (uint32_t q = 0; q < queries.n; ++q) {
    const size_t first = q * queries.stride;
    for (size_t i = first; i < first + DotQuads(dim); i += kPartChannels / 4) {
      SpreadPart(queries.high + i, out);
      SpreadPart(queries.low + i, out + kVectorBytes);
      out += 2 * kVectorBytes;
    }
  }
}

void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out) {
  constexpr decltype(&ScoreBlocks<1>) kScore[] = {ScoreBlocks<1>, ScoreBlocks<2>, ScoreBlocks<3>,
                                                  ScoreBlocks<4>};
  for (uint32_t q = 0; q < queries.n; q += 4) {
    kScore[Min(queries.n - q, 4u) - 1](queries, q, strips, n_blocks, dim, out);
  }
}

void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums) {
  constexpr decltype(&AddQueries<1>) kAdd[] = {AddQueries<1>, AddQueries<2>, AddQueries<3>,
                                               AddQueries<4>};
  for (uint32_t q = 0; q < weights.n; q += 4) {
    kAdd[Min(weights.n - q, 4u) - 1](weights, q, strips, n_quads, dim, stride, sums);
  }
}

}  // namespace arn::cpu::vnni
#endif
