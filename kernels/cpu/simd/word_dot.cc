// Int8Dot for CPUs without byte dot products: 16-bit queries and weights are multiplied by bytes
// that are widened to 16 bits, and pairs of products are added to 32 bits (pmaddwd).
// Layouts of packed tiles:
//   keys    [blocks of 16 tokens][pairs of channels][16 tokens][2 channels]
//   values  [pairs of tokens][channels][2 tokens]
#include "kernels/contract/program.h"
#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/simd/targets.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/word_dot.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/word_dot-inl.h"
#include "kernels/cpu/simd/word_dot_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace {
#if ARN_HAS_WORD_DOT
// Transposes 8 x 8 words.
template <class V>
HWY_INLINE void Transpose(V (&r)[8]) {
  const Of16<D8Block> d;
  for (int round = 0; round < 3; ++round) {
    V s[8];
    for (int i = 0; i < 4; ++i) {
      s[2 * i] = hn::InterleaveLower(d, r[i], r[i + 4]);
      s[2 * i + 1] = hn::InterleaveUpper(d, r[i], r[i + 4]);
    }
    for (int i = 0; i < 8; ++i) r[i] = s[i];
  }
}

HWY_INLINE hn::Vec<D8Block> LoadBlock(const int8_t* row, size_t first, size_t dim) {
  const D8Block d;
  return first + 16 <= dim ? hn::LoadU(d, row + first) : hn::LoadN(d, row + first, dim - first);
}

void PackKeys(const int8_t* const* strips, uint32_t n_blocks, uint32_t dim, uint8_t* out) {
  const Of16<D8Block> d;
  const size_t n_pairs = CeilDiv(dim, 2);
  constexpr size_t kPairBytes = 2 * kDotBlock;
  for (uint32_t block = 0; block < n_blocks; ++block, out += n_pairs * kPairBytes) {
    for (uint32_t strip = 0; strip < 2; ++strip) {
      const int8_t* rows = strips[2 * block + strip];
      for (size_t pair = 0; pair < n_pairs; pair += 8) {
        hn::Vec<Of16<D8Block>> r[8];
        for (uint32_t t = 0; t < 8; ++t) {
          r[t] = hn::BitCast(d, LoadBlock(rows + size_t{t} * dim, 2 * pair, dim));
        }
        Transpose(r);
        uint8_t* to = out + pair * kPairBytes + size_t{strip} * 16;
        for (size_t i = 0; i < 8 && pair + i < n_pairs; ++i, to += kPairBytes) {
          hn::StoreU(r[i], d, reinterpret_cast<int16_t*>(to));
        }
      }
    }
  }
}

void PackValues(const int8_t* const* strips, uint32_t n_quads, uint32_t dim, uint8_t* out) {
  const D8Block d;
  for (uint32_t pair = 0; pair < 2 * n_quads; ++pair) {
    const int8_t* row = DotRow(strips, 2 * pair, dim);
    for (size_t i = 0; i < dim; i += 16, out += 32) {
      const auto a = LoadBlock(row, i, dim), b = LoadBlock(row + dim, i, dim);
      auto* to = reinterpret_cast<int8_t*>(out);
      hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + 16);
    }
  }
}

// Sums of 16 tokens (or channels) of a packed tile for kQueries queries.
template <uint32_t kQueries>
struct BlockSums {
  static constexpr uint32_t kVectors = kDotBlock / kSums;
  Sum<D8> of[kQueries][kVectors];

  // Sums over n pairs, pair_bytes apart; words of query q are at words + q * stride.
  HWY_INLINE void Run(const uint8_t* pairs, size_t pair_bytes, uint32_t n, const int16_t* words,
                      size_t stride) {
    for (auto& query : of) {
      for (auto& sum : query) sum.Clear();
    }
    for (uint32_t i = 0; i < n; ++i, pairs += pair_bytes, words += 2) {
      Words x[kVectors];
      for (uint32_t v = 0; v < kVectors; ++v) {
        x[v] = hn::PromoteTo(D16(), hn::LoadU(hn::Rebind<int8_t, D16>(),
                                              reinterpret_cast<const int8_t*>(pairs) + v * kWords));
      }
      for (uint32_t q = 0; q < kQueries; ++q) {
        const Words w = Pair<D8>(words + q * stride);
        for (uint32_t v = 0; v < kVectors; ++v) of[q][v].Add(x[v], w);
      }
    }
  }
};

template <uint32_t kQueries>
void ScoreBlocks(const int16_t* words, size_t stride, const uint8_t* keys, uint32_t n_blocks,
                 uint32_t dim, float* out) {
  const hn::Repartition<float, D8> d;
  constexpr size_t kPairBytes = 2 * kDotBlock;
  // Sums over more channels could overflow.
  constexpr uint32_t kSpan = kDotRowDim / 2;
  const auto n_pairs = static_cast<uint32_t>(CeilDiv(dim, 2));
  for (uint32_t block = 0; block < n_blocks; ++block, keys += n_pairs * kPairBytes) {
    for (uint32_t first = 0; first < n_pairs; first += kSpan) {
      BlockSums<kQueries> sums;
      sums.Run(keys + first * kPairBytes, kPairBytes, Min(kSpan, n_pairs - first),
               words + size_t{2} * first, stride);
      for (uint32_t q = 0; q < kQueries; ++q) {
        float* to = out + size_t{q} * kDotTokens + block * kDotBlock;
        for (const auto& sum : sums.of[q]) {
          const auto scores = hn::ConvertTo(d, sum.Pairs());
          hn::StoreU(first == 0 ? scores : hn::Add(scores, hn::LoadU(d, to)), d, to);
          to += kSums;
        }
      }
    }
  }
}

void Scores(const DotQueries& queries, const uint8_t* keys, uint32_t n_blocks, uint32_t dim,
            float* out) {
  constexpr decltype(&ScoreBlocks<1>) kScore[] = {ScoreBlocks<1>, ScoreBlocks<2>, ScoreBlocks<3>,
                                                  ScoreBlocks<4>};
  HWY_ALIGN int16_t words[kGroup * kMaxHeadDim];
  for (uint32_t q = 0; q < queries.n; q += kGroup) {
    const uint32_t n = Min(queries.n - q, kGroup);
    JoinQueries(queries, q, n, dim, kMaxHeadDim, words);
    kScore[n - 1](words, kMaxHeadDim, keys, n_blocks, dim, out + size_t{q} * kDotTokens);
  }
}

template <uint32_t kQueries>
void AddBlocks(const int16_t* words, const float* factors, const uint8_t* values, uint32_t n_pairs,
               uint32_t width, uint32_t n_channels, size_t stride, float* out) {
  for (uint32_t channel = 0; channel < n_channels; channel += kDotBlock) {
    BlockSums<kQueries> sums;
    sums.Run(values + size_t{2} * channel, size_t{2} * width, n_pairs, words, kDotTokens);
    for (uint32_t q = 0; q < kQueries; ++q) {
      float* to = out + q * stride + channel;
      for (const auto& sum : sums.of[q]) {
        AddTo(sum.Pairs(), factors[q], to);
        to += kSums;
      }
    }
  }
}

void AddValues(const DotWeights& weights, const uint8_t* values, uint32_t n_quads, uint32_t width,
               uint32_t n_channels, size_t stride, float* sums) {
  constexpr decltype(&AddBlocks<1>) kAdd[] = {AddBlocks<1>, AddBlocks<2>, AddBlocks<3>,
                                              AddBlocks<4>};
  HWY_ALIGN int16_t words[kGroup * kDotTokens];
  for (uint32_t q = 0; q < weights.n; q += kGroup) {
    const uint32_t n = Min(weights.n - q, kGroup);
    JoinWeights(weights, q, n, 2 * n_quads, words);
    kAdd[n - 1](words, weights.factors + q, values, 2 * n_quads, width, n_channels, stride,
                sums + q * stride);
  }
}

// Maximum weight 32767: the largest word.
constexpr Int8Dot kWordDot = {.pack_keys = PackKeys,
                              .pack_values = PackValues,
                              .scores = Scores,
                              .add_values = AddValues,
                              .spread_queries = SpreadQueries,
                              .score_rows = ScoreRows,
                              .add_value_rows = AddValueRows,
                              .score_packed_rows = ScorePackedRows,
                              .add_packed_value_rows = AddPackedValueRows,
                              .weight_max = 32767,
                              .weights_signed = false,
                              .packed_takes_words = true,
                              .unit = 2};
#endif
}  // namespace

const Int8Dot* WordDot() {
#if ARN_HAS_WORD_DOT
  return &kWordDot;
#else
  return nullptr;
#endif
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(WordDot);
const Int8Dot* Int8DotWords() { return HWY_DYNAMIC_DISPATCH(WordDot)(); }

}  // namespace arn::cpu
#endif
