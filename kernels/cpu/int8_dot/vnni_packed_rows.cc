// Int8Dot with AVX512-VNNI for tiles of few queries over rows of 4 or 2 bits. Bytes of packed rows
// are put in the order that the multiplication needs, and then split: shifted and masked.
#include "kernels/cpu/int8_dot/vnni.h"

#if defined(__x86_64__)

// AVX3_DL, which Int8DotVnni() requires, has VBMI's permutation of bytes.
#define ARN_VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))
#define ARN_VBMI_INLINE ARN_VBMI __attribute__((always_inline)) inline

namespace arn::cpu::vnni {
namespace {

ARN_VBMI_INLINE __m128i LoadUnit(const int8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Loads bytes [16 * part, + 16) of the rows of four tokens: 128-bit part i of the result is token
// i's. Two rows of 32 bytes, and four of 16, lie in one vector.
template <uint32_t kRowBytes>
ARN_VBMI_INLINE __m512i LoadPart(const int8_t* rows, size_t row_bytes, uint32_t part) {
  if constexpr (kRowBytes == kPackedRowUnit) return _mm512_loadu_si512(rows);
  if constexpr (kRowBytes == 2 * kPackedRowUnit) {
    const __m512i a = _mm512_loadu_si512(rows), b = _mm512_loadu_si512(rows + kVectorBytes);
    return part == 0 ? _mm512_shuffle_i32x4(a, b, 0x88) : _mm512_shuffle_i32x4(a, b, 0xdd);
  }
  const int8_t* first = rows + part * kPackedRowUnit;
  const __m256i a = _mm256_inserti128_si256(_mm256_castsi128_si256(LoadUnit(first)),
                                            LoadUnit(first + row_bytes), 1);
  const __m256i b = _mm256_inserti128_si256(_mm256_castsi128_si256(LoadUnit(first + 2 * row_bytes)),
                                            LoadUnit(first + 3 * row_bytes), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

// Returns value j of each byte.
template <uint32_t kBits>
ARN_VBMI_INLINE __m512i ValueOf(__m512i bytes, uint32_t j) {
  const __m512i mask = _mm512_set1_epi8((1 << kBits) - 1);
  return _mm512_and_si512(_mm512_srli_epi16(bytes, j * kBits), mask);
}

// Repeats 16 channels of a query for four tokens.
ARN_VBMI_INLINE __m512i Spread(const int8_t* channels) {
  return _mm512_broadcast_i32x4(LoadUnit(channels));
}

// Scores 16 tokens for kQueries queries. A vector has 16 channels of four tokens, so a query's
// partial sums for one token are the four lanes of a part.
template <uint32_t kBits, uint32_t kRowBytes, uint32_t kQueries>
ARN_VBMI_INLINE void ScoreBlock(const DotQueries& queries, uint32_t query,
                                const int8_t* const* strips, uint32_t row_bytes, float* out) {
  if (kRowBytes != 0) row_bytes = kRowBytes;
  const uint32_t n_parts = row_bytes / kPackedRowUnit;
  const size_t stride = queries.stride * sizeof(int32_t);
  const auto* from_high = reinterpret_cast<const int8_t*>(queries.high) + query * stride;
  const auto* from_low = reinterpret_cast<const int8_t*>(queries.low) + query * stride;
  __m512i pairs[2][kQueries];
  for (uint32_t i = 0; i < 2; ++i) {  // eight tokens: a strip
    __m512i high[2][kQueries] = {}, low[2][kQueries] = {};
    for (uint32_t part = 0; part < n_parts; ++part) {
      const __m512i bytes[2] = {
          LoadPart<kRowBytes>(strips[i], row_bytes, part),
          LoadPart<kRowBytes>(strips[i] + size_t{4} * row_bytes, row_bytes, part)};
      for (uint32_t j = 0; j < 8 / kBits; ++j) {
        const __m512i k[2] = {ValueOf<kBits>(bytes[0], j), ValueOf<kBits>(bytes[1], j)};
        const size_t channel = size_t{j} * row_bytes + part * kPackedRowUnit;
        for (uint32_t q = 0; q < kQueries; ++q) {
          const __m512i h = Spread(from_high + q * stride + channel);
          const __m512i l = Spread(from_low + q * stride + channel);
          for (uint32_t t = 0; t < 2; ++t) {
            AddProducts(k[t], h, &high[t][q]);
            AddProducts(k[t], l, &low[t][q]);
          }
        }
      }
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      for (uint32_t t = 0; t < 2; ++t) {
        low[t][q] = _mm512_add_epi32(_mm512_slli_epi32(high[t][q], 8), low[t][q]);
      }
      pairs[i][q] = _mm512_add_epi32(_mm512_unpacklo_epi32(low[0][q], low[1][q]),
                                     _mm512_unpackhi_epi32(low[0][q], low[1][q]));
    }
  }
  // Lane 4 p + g has token 4 g + p.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (uint32_t q = 0; q < kQueries; ++q) {
    const __m512i sum = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[0][q], pairs[1][q]),
                                         _mm512_unpackhi_epi64(pairs[0][q], pairs[1][q]));
    _mm512_storeu_ps(out + size_t{query + q} * kDotTokens,
                     _mm512_cvtepi32_ps(_mm512_permutexvar_epi32(order, sum)));
  }
}

template <uint32_t kBits, uint32_t kRowBytes, uint32_t kQueries>
ARN_VBMI void ScoreBlocks(const DotQueries& queries, uint32_t query, const int8_t* const* strips,
                          uint32_t n_blocks, uint32_t row_bytes, float* out) {
  for (uint32_t block = 0; block < n_blocks;
       ++block, strips += kDotBlock / kKvStrip, out += kDotBlock) {
    ScoreBlock<kBits, kRowBytes, kQueries>(queries, query, strips, row_bytes, out);
  }
}

// Adds kVectors vectors of 16 channels. Each has value j of parts [part, part + kVectors).
template <uint32_t kBits, uint32_t kRowBytes, uint32_t kQueries, uint32_t kVectors>
ARN_VBMI_INLINE void AddVectors(const DotWeights& weights, uint32_t query,
                                const int8_t* const* strips, uint32_t n_quads, uint32_t row_bytes,
                                uint32_t part, uint32_t j, size_t stride, float* sums) {
  // Byte 4 c + t of the result is byte c of token t. Rows of 32 bytes come in two vectors.
  constexpr bool kTwoVectors = kRowBytes == 2 * kPackedRowUnit;
  const __m512i order = _mm512_add_epi8(
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(0x01010101)),
      _mm512_set1_epi32(kTwoVectors ? 0x60402000 : 0x30201000));
  __m512i high[kQueries][kVectors], low[kQueries][kVectors];
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t c = 0; c < kVectors; ++c) high[q][c] = low[q][c] = _mm512_setzero_si512();
  }
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(j * kBits));
  const __m512i mask = _mm512_set1_epi8((1 << kBits) - 1);
  const uint8_t* from_high = weights.high + size_t{query} * kDotTokens;
  const uint8_t* from_low = weights.low + size_t{query} * kDotTokens;
  for (uint32_t i = 0; i < n_quads; ++i) {
    const int8_t* rows = strips[i / 2] + (i % 2 == 0 ? 0 : size_t{4} * row_bytes);
    __m512i v[kVectors];
    for (uint32_t c = 0; c < kVectors; ++c) {
      __m512i bytes;
      if constexpr (kTwoVectors) {
        const __m512i at = _mm512_or_si512(
            order, _mm512_set1_epi8(static_cast<char>((part + c) * kPackedRowUnit)));
        bytes = _mm512_permutex2var_epi8(_mm512_loadu_si512(rows), at,
                                         _mm512_loadu_si512(rows + kVectorBytes));
      } else {
        bytes = _mm512_permutexvar_epi8(order, LoadPart<kRowBytes>(rows, row_bytes, part + c));
      }
      v[c] = _mm512_and_si512(_mm512_srl_epi16(bytes, shift), mask);
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

template <uint32_t kBits, uint32_t kRowBytes, uint32_t kQueries>
ARN_VBMI void AddQueries(const DotWeights& weights, uint32_t query, const int8_t* const* strips,
                         uint32_t n_quads, uint32_t row_bytes, uint32_t channel,
                         uint32_t n_channels, size_t stride, float* sums) {
  if (kRowBytes != 0) row_bytes = kRowBytes;
  const uint32_t end = channel + n_channels;
  while (channel < end) {
    const uint32_t j = channel / row_bytes, part = channel % row_bytes / kPackedRowUnit;
    if (kRowBytes != kPackedRowUnit && channel + 2 * kLanes <= end &&
        (part + 2) * kPackedRowUnit <= row_bytes) {
      AddVectors<kBits, kRowBytes, kQueries, 2>(weights, query, strips, n_quads, row_bytes, part, j,
                                                stride, sums);
      channel += 2 * kLanes;
      sums += 2 * kLanes;
    } else {
      AddVectors<kBits, kRowBytes, kQueries, 1>(weights, query, strips, n_quads, row_bytes, part, j,
                                                stride, sums);
      channel += kLanes;
      sums += kLanes;
    }
  }
}

template <uint32_t kBits, uint32_t kRowBytes>
struct Kernels {
  static constexpr decltype(&ScoreBlocks<kBits, kRowBytes, 1>) kScore[] = {
      ScoreBlocks<kBits, kRowBytes, 1>, ScoreBlocks<kBits, kRowBytes, 2>,
      ScoreBlocks<kBits, kRowBytes, 3>, ScoreBlocks<kBits, kRowBytes, 4>};
  static constexpr decltype(&AddQueries<kBits, kRowBytes, 1>) kAdd[] = {
      AddQueries<kBits, kRowBytes, 1>, AddQueries<kBits, kRowBytes, 2>,
      AddQueries<kBits, kRowBytes, 3>, AddQueries<kBits, kRowBytes, 4>};
};

// Calls run(Kernels) with the kernels for rows of this size.
template <typename Run>
inline void WithKernels(uint32_t bits, uint32_t row_bytes, Run run) {
  if (bits == 4) {
    if (row_bytes == 2 * kPackedRowUnit) return run(Kernels<4, 2 * kPackedRowUnit>());
    return run(Kernels<4, 0>());
  }
  if (row_bytes == kPackedRowUnit) return run(Kernels<2, kPackedRowUnit>());
  if (row_bytes == 2 * kPackedRowUnit) return run(Kernels<2, 2 * kPackedRowUnit>());
  return run(Kernels<2, 0>());
}

}  // namespace

void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out) {
  WithKernels(bits, row_bytes, [&](auto kernels) {
    for (uint32_t q = 0; q < queries.n; q += 4) {
      kernels.kScore[Min(queries.n - q, 4u) - 1](queries, q, strips, n_blocks, row_bytes, out);
    }
  });
}

void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums) {
  WithKernels(bits, row_bytes, [&](auto kernels) {
    for (uint32_t q = 0; q < weights.n; q += 4) {
      kernels.kAdd[Min(weights.n - q, 4u) - 1](weights, q, strips, n_quads, row_bytes, channel,
                                               n_channels, stride, sums);
    }
  });
}

}  // namespace arn::cpu::vnni
#endif
