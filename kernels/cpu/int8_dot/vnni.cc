// Int8Dot with AVX512-VNNI on packed tiles.
#include "kernels/cpu/int8_dot/vnni.h"

#if defined(__x86_64__)
#include "kernels/cpu/cpu_features.h"

namespace arn::cpu {
namespace {
using namespace vnni;

// Transposes a 16 x 16 matrix of dwords.
ARN_VNNI_INLINE void Transpose(__m512i (&r)[16]) {
  __m512i s[16];
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  // t[4 i + c]: in each 128-bit part p, dwords 4 p + c of rows 4 i to 4 i + 3.
  __m512i t[16];
  for (int i = 0; i < 16; i += 4) {
    t[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    t[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    t[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    t[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512i low_even = _mm512_shuffle_i32x4(t[c], t[4 + c], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(t[c], t[4 + c], 0xdd);
    const __m512i high_even = _mm512_shuffle_i32x4(t[8 + c], t[12 + c], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(t[8 + c], t[12 + c], 0xdd);
    r[c] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
    r[8 + c] = _mm512_shuffle_i32x4(low_even, high_even, 0xdd);
    r[4 + c] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    r[12 + c] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
  }
}

ARN_VNNI void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out) {
  const uint32_t quads = DotQuads(dim);
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(kKeyBias));
  for (uint32_t block = 0; block < n_blocks; ++block) {
    for (uint32_t quad = 0; quad < quads; quad += kLanes) {
      __m512i r[16];
      for (uint32_t i = 0; i < kDotBlock; ++i) {
        const int8_t* row = DotRow(strips, block * kDotBlock + i, dim);
        r[i] = _mm512_xor_si512(LoadRow(row, 4 * quad, dim), bias);
      }
      Transpose(r);
      if (quads - quad >= kLanes) {
        for (uint32_t i = 0; i < kLanes; ++i) _mm512_storeu_si512(out + kVectorBytes * i, r[i]);
        out += kLanes * kVectorBytes;
      } else {
        for (uint32_t i = 0; i < quads - quad; ++i, out += kVectorBytes) {
          _mm512_storeu_si512(out, r[i]);
        }
      }
    }
  }
}

ARN_VNNI void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim,
                         uint8_t* out) {
  // Unpack instructions work inside 128-bit parts; permuting the dwords first makes their output
  // contiguous.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (uint32_t quad = 0; quad < n_quads; ++quad) {
    for (uint32_t channel = 0; channel < dim; channel += kVectorBytes) {
      __m512i r[4];
      for (uint32_t i = 0; i < 4; ++i) {
        const int8_t* row = DotRow(strips, quad * 4 + i, dim);
        r[i] = _mm512_permutexvar_epi32(order, LoadRow(row, channel, dim));
      }
      const __m512i low01 = _mm512_unpacklo_epi8(r[0], r[1]);
      const __m512i low23 = _mm512_unpacklo_epi8(r[2], r[3]);
      const __m512i high01 = _mm512_unpackhi_epi8(r[0], r[1]);
      const __m512i high23 = _mm512_unpackhi_epi8(r[2], r[3]);
      const __m512i quads[4] = {
          _mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
          _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
      for (uint32_t i = 0; i < 4 && channel + i * kLanes < dim; ++i, out += kVectorBytes) {
        _mm512_storeu_si512(out, quads[i]);
      }
    }
  }
}

// Scores of kQueries queries for kBlocks blocks of keys.
template <uint32_t kQueries, uint32_t kBlocks>
ARN_VNNI_INLINE void ScoreBlocks(const DotQueries& queries, uint32_t query, const uint8_t* keys,
                                 uint32_t quads, float* out) {
  __m512i high[kQueries][kBlocks], low[kQueries][kBlocks];
  for (uint32_t q = 0; q < kQueries; ++q) {
    const __m512i start_high = _mm512_set1_epi32(-kKeyBias * queries.high_sums[query + q]);
    const __m512i start_low = _mm512_set1_epi32(-kKeyBias * queries.low_sums[query + q]);
    for (uint32_t b = 0; b < kBlocks; ++b) high[q][b] = start_high, low[q][b] = start_low;
  }
  const int32_t* from_high = queries.high + query * queries.stride;
  const int32_t* from_low = queries.low + query * queries.stride;
  for (uint32_t i = 0; i < quads; ++i) {
    __m512i k[kBlocks];
    for (uint32_t b = 0; b < kBlocks; ++b) {
      k[b] = _mm512_loadu_si512(keys + size_t{b * quads + i} * kVectorBytes);
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      const __m512i h = _mm512_set1_epi32(from_high[q * queries.stride + i]);
      const __m512i l = _mm512_set1_epi32(from_low[q * queries.stride + i]);
      for (uint32_t b = 0; b < kBlocks; ++b) {
        AddProducts(k[b], h, &high[q][b]);
        AddProducts(k[b], l, &low[q][b]);
      }
    }
  }
  const __m512 shift = _mm512_set1_ps(256.0f);
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t b = 0; b < kBlocks; ++b) {
      const __m512 sum =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(high[q][b]), shift, _mm512_cvtepi32_ps(low[q][b]));
      _mm512_storeu_ps(out + size_t{query + q} * kDotTokens + b * kDotBlock, sum);
    }
  }
}

template <uint32_t kQueries>
ARN_VNNI void ScoreQueries(const DotQueries& queries, uint32_t query, const uint8_t* keys,
                           uint32_t n_blocks, uint32_t quads, float* out) {
  constexpr uint32_t kBlocks = kQueries <= 2 ? 4 : 2;
  uint32_t block = 0;
  auto at = [&](uint32_t b) { return keys + size_t{b} * quads * kVectorBytes; };
  for (; block + kBlocks <= n_blocks; block += kBlocks) {
    ScoreBlocks<kQueries, kBlocks>(queries, query, at(block), quads, out + block * kDotBlock);
  }
  for (; block < n_blocks; ++block) {
    ScoreBlocks<kQueries, 1>(queries, query, at(block), quads, out + block * kDotBlock);
  }
}

void Scores(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks, uint32_t dim,
            float* out) {
  constexpr decltype(&ScoreQueries<1>) kScore[] = {ScoreQueries<1>, ScoreQueries<2>,
                                                   ScoreQueries<3>, ScoreQueries<4>};
  for (uint32_t q = 0; q < queries.n; q += 4) {
    kScore[Min(queries.n - q, 4u) - 1](queries, q, keys, n_blocks, DotQuads(dim), out);
  }
}

// Adds kVectors vectors of channels to kQueries queries.
template <uint32_t kQueries, uint32_t kVectors>
ARN_VNNI_INLINE void AddVectors(const DotWeights& weights, uint32_t query, const uint8_t* values,
                                size_t quad_bytes, uint32_t n_quads, size_t stride, float* sums) {
  __m512i high[kQueries][kVectors], low[kQueries][kVectors];
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t c = 0; c < kVectors; ++c) high[q][c] = low[q][c] = _mm512_setzero_si512();
  }
  const uint8_t* from_high = weights.high + size_t{query} * kDotTokens;
  const uint8_t* from_low = weights.low + size_t{query} * kDotTokens;
  for (uint32_t i = 0; i < n_quads; ++i) {
    __m512i v[kVectors];
    for (uint32_t c = 0; c < kVectors; ++c) {
      v[c] = _mm512_loadu_si512(values + i * quad_bytes + c * kVectorBytes);
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      const __m512i h = Quad(from_high + q * kDotTokens + 4 * i);
      const __m512i l = Quad(from_low + q * kDotTokens + 4 * i);
      for (uint32_t c = 0; c < kVectors; ++c) {
        AddProducts(h, v[c], &high[q][c]);
        AddProducts(l, v[c], &low[q][c]);
      }
    }
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    const __m512 factor = _mm512_set1_ps(weights.factors[query + q]);
    for (uint32_t c = 0; c < kVectors; ++c) {
      float* to = sums + (query + q) * stride + c * kLanes;
      const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(high[q][c], 8), low[q][c]);
      _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), factor, _mm512_loadu_ps(to)));
    }
  }
}

template <uint32_t kQueries>
ARN_VNNI void AddQueries(const DotWeights& weights, uint32_t query, const uint8_t* values,
                         uint32_t n_quads, uint32_t width, uint32_t n_channels, size_t stride,
                         float* sums) {
  constexpr uint32_t kVectors = kQueries <= 2 ? 4 : 2;
  const uint32_t end = DotValueWidth(n_channels);
  const size_t quad_bytes = size_t{width} * 4;
  uint32_t channel = 0;
  for (; channel + kVectors * kLanes <= end; channel += kVectors * kLanes) {
    AddVectors<kQueries, kVectors>(weights, query, values + channel * 4, quad_bytes, n_quads,
                                   stride, sums + channel);
  }
  for (; channel < end; channel += kLanes) {
    AddVectors<kQueries, 1>(weights, query, values + channel * 4, quad_bytes, n_quads, stride,
                            sums + channel);
  }
}

void AddValues(const DotWeights& weights, const uint8_t* values, uint32_t n_quads, uint32_t width,
               uint32_t n_channels, size_t stride, float* sums) {
  constexpr decltype(&AddQueries<1>) kAdd[] = {AddQueries<1>, AddQueries<2>, AddQueries<3>,
                                               AddQueries<4>};
  for (uint32_t q = 0; q < weights.n; q += 4) {
    kAdd[Min(weights.n - q, 4u) - 1](weights, q, values, n_quads, width, n_channels, stride, sums);
  }
}

// Maximum weight 65535: 65535 * 127 * kDotTokens stays below 2^31.
constexpr Int8Dot kVnni = {.pack_keys = PackKeys,
                           .pack_values = PackValues,
                           .scores = Scores,
                           .add_values = AddValues,
                           .spread_queries = SpreadQueries,
                           .score_rows = ScoreRows,
                           .add_value_rows = AddValueRows,
                           .score_packed_rows = ScorePackedRows,
                           .add_packed_value_rows = AddPackedValueRows,
                           .weight_max = 65535,
                           .weights_signed = false,
                           .unit = 4,
                           .key_bias = kKeyBias};

}  // namespace

const Int8Dot* Int8DotVnni() { return HasByteDots() ? &kVnni : nullptr; }

}  // namespace arn::cpu

#else
#include "kernels/cpu/int8_dot/int8_dot.h"

namespace arn::cpu {
const Int8Dot* Int8DotVnni() { return nullptr; }
}  // namespace arn::cpu
#endif
