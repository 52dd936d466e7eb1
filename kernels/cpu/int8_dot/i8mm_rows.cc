// Int8Dot with smmla, without packing: for tiles with few queries.
#include "kernels/cpu/int8_dot/mmla.h"

#if defined(ARN_HAS_MMLA)

namespace arn::cpu::mmla {
namespace {

constexpr uint32_t kLanes = 4;        // i32 or f32 lanes per vector
constexpr uint32_t kTokens = kEight;  // sums of up to four queries stay in registers

template <uint32_t kQueries>
using Sums = int32x4_t[kQueries][4];

// Adds 16 channels (fewer at the end of a row) of the tokens of a strip; the queries are
// zero-padded.
template <uint32_t kQueries, bool kWhole>
ARN_I8MM_INLINE void AddProducts(const int8_t* spread, size_t query_bytes, const int8_t* strip,
                                 uint32_t first, uint32_t dim, Sums<kQueries>* sums) {
  int8x16_t x[kQueries][2];
  for (uint32_t q = 0; q < kQueries; ++q) {
    const int8_t* planes = spread + q * query_bytes + 2 * first;
    x[q][0] = vld1q_s8(planes);
    x[q][1] = vld1q_s8(planes + kPairBytes);
  }
  for (uint32_t p = 0; p < kTokens / 2; ++p) {
    const int8_t* row = strip + size_t{2 * p} * dim;
    const int8x16_t a = LoadRow<kWhole>(row, first, dim),
                    b = LoadRow<kWhole>(row + dim, first, dim);
    const int8x16_t pairs[2] = {FirstHalves(a, b), SecondHalves(a, b)};
    for (uint32_t q = 0; q < kQueries; ++q) {
      (*sums)[q][p] = vmmlaq_s32((*sums)[q][p], x[q][0], pairs[0]);
      (*sums)[q][p] = vmmlaq_s32((*sums)[q][p], x[q][1], pairs[1]);
    }
  }
}

template <uint32_t kQueries>
ARN_I8MM void ScoreStrips(const int8_t* spread, size_t query_bytes, const int8_t* const* strips,
                          uint32_t n_strips, uint32_t dim, float* out) {
  for (uint32_t i = 0; i < n_strips; ++i, out += kTokens) {
    Sums<kQueries> sums = {};
    uint32_t first = 0;
    for (; first + kPairBytes <= dim; first += kPairBytes) {
      AddProducts<kQueries, true>(spread, query_bytes, strips[i], first, dim, &sums);
    }
    if (first < dim) {
      AddProducts<kQueries, false>(spread, query_bytes, strips[i], first, dim, &sums);
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      float* scores = out + q * kDotTokens;
      StorePairs(sums[q][0], sums[q][1], scores);
      StorePairs(sums[q][2], sums[q][3], scores + kLanes);
    }
  }
}

// Bytes of one query's weights, both planes in pairs.
constexpr uint32_t kWeightBytes = 2 * kDotTokens;

// Adds channels [first, first + 8) (fewer at the end of a row) of `eights` strips.
template <uint32_t kQueries, bool kWhole>
ARN_I8MM void AddEight(const int8_t* weights, const float* factors, const int8_t* const* strips,
                       uint32_t eights, uint32_t first, uint32_t dim, size_t stride, float* out) {
  Sums<kQueries> sums = {};
  for (uint32_t i = 0; i < eights; ++i) {
    int8x16_t pairs[4];
    PairChannels<kWhole>(strips[i], first, dim, pairs);
    for (uint32_t q = 0; q < kQueries; ++q) {
      const int8x16_t x = vld1q_s8(weights + q * kWeightBytes + i * kPairBytes);
      for (uint32_t p = 0; p < 4; ++p) sums[q][p] = vmmlaq_s32(sums[q][p], x, pairs[p]);
    }
  }
  for (uint32_t q = 0; q < kQueries; ++q, out += stride) {
    AddPairs(sums[q][0], sums[q][1], factors[q], out);
    AddPairs(sums[q][2], sums[q][3], factors[q], out + kLanes);
  }
}

}  // namespace

void SpreadQueries(const DotQueries& queries, uint32_t dim) {
  for (uint32_t q = 0; q < queries.n; ++q) {
    const size_t at = q * queries.stride;
    PairPlanes(queries.high + at, queries.low + at, Eights(DotValueWidth(dim)),
               queries.spread + q * DotSpreadBytes(dim));
  }
}

void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out) {
  constexpr decltype(&ScoreStrips<1>) kScore[] = {ScoreStrips<1>, ScoreStrips<2>, ScoreStrips<3>,
                                                  ScoreStrips<4>};
  const size_t query_bytes = DotSpreadBytes(dim);
  for (uint32_t q = 0; q < queries.n; q += 4) {
    kScore[Min(queries.n - q, 4u) - 1](queries.spread + q * query_bytes, query_bytes, strips,
                                       n_blocks * (kDotBlock / kKvStrip), dim,
                                       out + q * kDotTokens);
  }
}

void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums) {
  constexpr decltype(&AddEight<1, true>) kAdd[] = {AddEight<1, true>, AddEight<2, true>,
                                                   AddEight<3, true>, AddEight<4, true>};
  const uint32_t eights = Eights(4 * n_quads);
  alignas(kPairBytes) int8_t planes[kDotRowQueries * kWeightBytes];
  for (uint32_t q = 0; q < weights.n; ++q) {
    const size_t at = q * kDotTokens;
    PairPlanes(weights.high + at, weights.low + at, eights, planes + q * kWeightBytes);
  }
  uint32_t first = 0;
  for (; first + kEight <= dim; first += kEight) {
    for (uint32_t q = 0; q < weights.n; q += 4) {
      kAdd[Min(weights.n - q, 4u) - 1](planes + q * kWeightBytes, weights.factors + q, strips,
                                       eights, first, dim, stride, sums + q * stride + first);
    }
  }
  for (uint32_t q = 0; first < dim && q < weights.n; ++q) {
    AddEight<1, false>(planes + q * kWeightBytes, weights.factors + q, strips, eights, first, dim,
                       stride, sums + q * stride + first);
  }
}

}  // namespace arn::cpu::mmla
#endif
