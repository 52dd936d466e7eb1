// Int8Dot with ARMv8.2 dot products (sdot) on packed tiles. All bytes are signed.
#include "kernels/cpu/int8_dot/dotprod.h"
#include "kernels/cpu/cpu_features.h"

#if defined(ARN_HAS_DOTPROD)
namespace arn::cpu {
namespace {
using namespace dotprod;

constexpr uint32_t kBlockBytes = 4 * kDotBlock;
constexpr uint32_t kVectors = kDotBlock / kLanes;  // per block

// Transposes four tokens by four quads of channels.
ARN_DOTPROD_INLINE void Transpose(int32x4_t (&r)[4]) {
  const int64x2_t a = vreinterpretq_s64_s32(vtrn1q_s32(r[0], r[1]));
  const int64x2_t b = vreinterpretq_s64_s32(vtrn2q_s32(r[0], r[1]));
  const int64x2_t c = vreinterpretq_s64_s32(vtrn1q_s32(r[2], r[3]));
  const int64x2_t d = vreinterpretq_s64_s32(vtrn2q_s32(r[2], r[3]));
  r[0] = vreinterpretq_s32_s64(vtrn1q_s64(a, c));
  r[1] = vreinterpretq_s32_s64(vtrn1q_s64(b, d));
  r[2] = vreinterpretq_s32_s64(vtrn2q_s64(a, c));
  r[3] = vreinterpretq_s32_s64(vtrn2q_s64(b, d));
}

ARN_DOTPROD void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim,
                          uint8_t* out) {
  const uint32_t quads = DotQuads(dim);
  for (uint32_t block = 0; block < n_blocks; ++block, out += size_t{quads} * kBlockBytes) {
    for (uint32_t token = 0; token < kDotBlock; token += kLanes) {
      for (uint32_t quad = 0; quad < quads; quad += kLanes) {
        int32x4_t r[4];
        for (uint32_t i = 0; i < kLanes; ++i) {
          const int8_t* row = DotRow(strips, block * kDotBlock + token + i, dim);
          r[i] = vreinterpretq_s32_s8(LoadRow<false>(row, 4 * quad, dim));
        }
        Transpose(r);
        for (uint32_t i = 0; i < kLanes && quad + i < quads; ++i) {
          vst1q_u8(out + size_t{quad + i} * kBlockBytes + 4 * token, vreinterpretq_u8_s32(r[i]));
        }
      }
    }
  }
}

ARN_DOTPROD void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim,
                            uint8_t* out) {
  for (uint32_t quad = 0; quad < n_quads; ++quad) {
    for (uint32_t channel = 0; channel < dim; channel += kVectorBytes, out += kBlockBytes) {
      int8x16x4_t r;
      for (uint32_t i = 0; i < 4; ++i) {
        r.val[i] = LoadRow<false>(DotRow(strips, quad * 4 + i, dim), channel, dim);
      }
      vst4q_s8(reinterpret_cast<int8_t*>(out), r);
    }
  }
}

// Dot products of quad `lane` (four channels or tokens, one byte each) with the bytes of b.
ARN_DOTPROD_INLINE int32x4_t Dot(int32x4_t sum, int8x16_t b, int32x4_t quads, uint32_t lane) {
  const int8x16_t a = vreinterpretq_s8_s32(quads);
  switch (lane) {
    case 0: return vdotq_laneq_s32(sum, b, a, 0);
    case 1: return vdotq_laneq_s32(sum, b, a, 1);
    case 2: return vdotq_laneq_s32(sum, b, a, 2);
    default: return vdotq_laneq_s32(sum, b, a, 3);
  }
}

// Accumulates 16 tokens (or channels) over their quads, for both planes of each query.
template <uint32_t kQueries>
struct Sums {
  int32x4_t high[kQueries][kVectors] = {}, low[kQueries][kVectors] = {};

  // n quads, quad_bytes apart. The planes of query q start at plane + q * stride and are padded to
  // whole vectors; the quads after the last are not readable.
  ARN_DOTPROD_INLINE void Add(const uint8_t* quads, size_t quad_bytes, uint32_t n,
                              const uint8_t* high_plane, const uint8_t* low_plane, size_t stride) {
    for (uint32_t i = 0; i < n; i += kLanes, quads += kLanes * quad_bytes) {
      int32x4_t h[kQueries], l[kQueries];
      for (uint32_t q = 0; q < kQueries; ++q) {
        h[q] = vreinterpretq_s32_u8(vld1q_u8(high_plane + q * stride + 4 * i));
        l[q] = vreinterpretq_s32_u8(vld1q_u8(low_plane + q * stride + 4 * i));
      }
      if (i + kLanes <= n) {
        AddQuad(quads, h, l, 0);
        AddQuad(quads + quad_bytes, h, l, 1);
        AddQuad(quads + 2 * quad_bytes, h, l, 2);
        AddQuad(quads + 3 * quad_bytes, h, l, 3);
      } else {
        for (uint32_t j = 0; i + j < n; ++j) AddQuad(quads + j * quad_bytes, h, l, j);
      }
    }
  }

 private:
  ARN_DOTPROD_INLINE void AddQuad(const uint8_t* quad, const int32x4_t (&h)[kQueries],
                                  const int32x4_t (&l)[kQueries], uint32_t lane) {
    for (uint32_t v = 0; v < kVectors; ++v) {
      const int8x16_t b = vreinterpretq_s8_u8(vld1q_u8(quad + v * kVectorBytes));
      for (uint32_t q = 0; q < kQueries; ++q) {
        high[q][v] = Dot(high[q][v], b, h[q], lane);
        low[q][v] = Dot(low[q][v], b, l[q], lane);
      }
    }
  }
};

template <uint32_t kQueries>
ARN_DOTPROD_INLINE void ScoreBlock(const DotQueries& queries, uint32_t query, const uint8_t* keys,
                                   uint32_t quads, float* out) {
  const size_t at = query * queries.stride;
  Sums<kQueries> sums;
  sums.Add(keys, kBlockBytes, quads, reinterpret_cast<const uint8_t*>(queries.high + at),
           reinterpret_cast<const uint8_t*>(queries.low + at), 4 * queries.stride);
  for (uint32_t q = 0; q < kQueries; ++q) {
    float* scores = out + size_t{query + q} * kDotTokens;
    for (uint32_t v = 0; v < kVectors; ++v) {
      StoreScores(sums.high[q][v], sums.low[q][v], scores + v * kLanes);
    }
  }
}

ARN_DOTPROD void Scores(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks,
                        uint32_t dim, float* out) {
  const uint32_t quads = DotQuads(dim);
  for (uint32_t block = 0; block < n_blocks; ++block) {
    const uint8_t* from = keys + size_t{block} * quads * kBlockBytes;
    float* to = out + block * kDotBlock;
    uint32_t q = 0;
    for (; q + 2 <= queries.n; q += 2) ScoreBlock<2>(queries, q, from, quads, to);
    if (q < queries.n) ScoreBlock<1>(queries, q, from, quads, to);
  }
}

template <uint32_t kQueries>
ARN_DOTPROD_INLINE void AddBlock(const DotWeights& weights, uint32_t query, const uint8_t* values,
                                 size_t quad_bytes, uint32_t n_quads, size_t stride, float* to) {
  const size_t at = size_t{query} * kDotTokens;
  Sums<kQueries> sums;
  sums.Add(values, quad_bytes, n_quads, weights.high + at, weights.low + at, kDotTokens);
  for (uint32_t q = 0; q < kQueries; ++q) {
    float* row = to + (query + q) * stride;
    for (uint32_t v = 0; v < kVectors; ++v) {
      AddSums(sums.high[q][v], sums.low[q][v], weights.factors[query + q], row + v * kLanes);
    }
  }
}

ARN_DOTPROD void AddValues(const DotWeights& weights, const uint8_t* values, uint32_t n_quads,
                           uint32_t width, uint32_t n_channels, size_t stride, float* sums) {
  const size_t quad_bytes = size_t{width} * 4;
  for (uint32_t channel = 0; channel < n_channels; channel += kDotBlock) {
    const uint8_t* from = values + channel * 4;
    float* to = sums + channel;
    uint32_t q = 0;
    for (; q + 2 <= weights.n; q += 2) {
      AddBlock<2>(weights, q, from, quad_bytes, n_quads, stride, to);
    }
    if (q < weights.n) AddBlock<1>(weights, q, from, quad_bytes, n_quads, stride, to);
  }
}

#if defined(ARN_SMALL_CODE)
constexpr auto kScoreRows = nullptr, kAddValueRows = nullptr;
constexpr auto kScorePackedRows = nullptr, kAddPackedValueRows = nullptr;
#else
constexpr auto kScoreRows = ScoreRows;
constexpr auto kAddValueRows = AddValueRows;
constexpr auto kScorePackedRows = ScorePackedRows;
constexpr auto kAddPackedValueRows = AddPackedValueRows;
#endif
constexpr Int8Dot kDotprod = {.pack_keys = PackKeys,
                              .pack_values = PackValues,
                              .scores = Scores,
                              .add_values = AddValues,
                              .score_rows = kScoreRows,
                              .add_value_rows = kAddValueRows,
                              .score_packed_rows = kScorePackedRows,
                              .add_packed_value_rows = kAddPackedValueRows,
                              .weight_max = kNeonWeightMax,
                              .weights_signed = true,
                              .unit = 4};

}  // namespace

const Int8Dot* Int8DotDotprod() { return HasByteDots() ? &kDotprod : nullptr; }

}  // namespace arn::cpu

#else
namespace arn::cpu {
const Int8Dot* Int8DotDotprod() { return nullptr; }
}  // namespace arn::cpu
#endif
