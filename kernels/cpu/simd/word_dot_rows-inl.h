// Int8Dot of words without packing: for tiles of few queries, over rows of bytes or of 4 or 2 bits.
#if defined(ARN_KERNELS_CPU_SIMD_WORD_DOT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_WORD_DOT_ROWS_INL_H_
#undef ARN_KERNELS_CPU_SIMD_WORD_DOT_ROWS_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_WORD_DOT_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/cpu/simd/word_dot-inl.h"
#include "platform/base/arith.h"

#if ARN_HAS_WORD_DOT
HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace {
// Loads kWords bytes of a row (fewer at its end), widened: signed ones, or unsigned ones of packed
// values.
template <bool kSigned, bool kWhole>
HWY_INLINE Words LoadWords(const int8_t* row, size_t first, size_t bytes) {
  if constexpr (kSigned) {
    const hn::Rebind<int8_t, D16> d;
    return hn::PromoteTo(
        D16(), kWhole ? hn::LoadU(d, row + first) : hn::LoadN(d, row + first, bytes - first));
  } else {
    const hn::Rebind<uint8_t, D16> d;
    return hn::PromoteTo(D16(), hn::LoadU(d, reinterpret_cast<const uint8_t*>(row) + first));
  }
}

// Returns value j of each widened byte; kBits 0: the byte.
template <uint32_t kBits>
HWY_INLINE Words FieldOf(Words bytes, uint32_t j) {
  if constexpr (kBits == 0) return bytes;
  const D16 d;
  const auto mask = hn::Set(d, (1 << kBits) - 1);
  if ((j + 1) * kBits == 8) return hn::ShiftRight<8 - kBits>(bytes);
  switch (j) {
    case 0: return hn::And(bytes, mask);
    case 1: return hn::And(hn::ShiftRight<kBits>(bytes), mask);
    default: return hn::And(hn::ShiftRight<2 * kBits>(bytes), mask);
  }
}

// Adds the lanes of two vectors in part: the sum of the even (odd) lanes is the sum of a (b).
template <class V>
HWY_INLINE V AddInPart(V a, V b) {
  const D32 d32;
  return hn::Add(hn::InterleaveLower(d32, a, b), hn::InterleaveUpper(d32, a, b));
}

// Adds the lanes of four vectors, given AddInPart() of the first and the last two; lane i of the
// result is the sum of vector i.
template <class V>
HWY_INLINE hn::Vec<hn::CappedTag<int32_t, 4>> AddLanes(V first, V last) {
  const D32 d32;
  const hn::Repartition<int64_t, D32> d64;
  const auto a = hn::BitCast(d64, first), b = hn::BitCast(d64, last);
  const auto sum = hn::Add(hn::BitCast(d32, hn::InterleaveLower(d64, a, b)),
                           hn::BitCast(d32, hn::InterleaveUpper(d64, a, b)));
  if constexpr (kSums == 4) {
    return sum;
  } else {
    const hn::Half<D32> half;
    return hn::Add(hn::LowerHalf(half, sum), hn::UpperHalf(half, sum));
  }
}

template <uint32_t kBits, bool kWhole, uint32_t kQueries, uint32_t kTokens>
HWY_INLINE void AddProducts(const int16_t* words, size_t stride, const int8_t* rows, size_t first,
                            size_t row_bytes, Sum<D8> (&sums)[kQueries][kTokens]) {
  constexpr uint32_t kFields = kBits == 0 ? 1 : 8 / kBits;
  Words row[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) {
    row[t] = LoadWords<kBits == 0, kWhole>(rows + t * row_bytes, first, row_bytes);
  }
  for (uint32_t j = 0; j < kFields; ++j, words += row_bytes) {
    for (uint32_t t = 0; t < kTokens; ++t) {
      const Words x = FieldOf<kBits>(row[t], j);
      for (uint32_t q = 0; q < kQueries; ++q) {
        const Words w = hn::LoadU(D16(), words + q * stride + first);
        kBits == 0 ? sums[q][t].Add(x, w) : sums[q][t].AddInOrder(x, w);
      }
    }
  }
}

// Adds the products of kTokens rows.
template <uint32_t kBits, uint32_t kQueries, uint32_t kTokens>
HWY_INLINE void AddRowProducts(const int16_t* words, size_t stride, const int8_t* rows,
                               size_t row_bytes, Sum<D8> (&sums)[kQueries][kTokens]) {
  for (auto& query : sums) {
    for (auto& sum : query) sum.Clear();
  }
  size_t first = 0;
  for (; first + kWords <= row_bytes; first += kWords) {
    AddProducts<kBits, true>(words, stride, rows, first, row_bytes, sums);
  }
  if (kBits == 0 && first < row_bytes) {
    AddProducts<0, false>(words, stride, rows, first, row_bytes, sums);
  }
}

// Scores the tokens of strips; words of query q are at words + q * stride.
template <uint32_t kBits, uint32_t kQueries>
void ScoreStrips(const int16_t* words, size_t stride, const int8_t* const* strips,
                 uint32_t n_strips, size_t row_bytes, float* out) {
  constexpr uint32_t kTokens = 4 * kQueries <= kMaxSums ? 4 : 2;  // their sums stay in registers
  const hn::CappedTag<float, 4> d;
  for (uint32_t token = 0; token < n_strips * kKvStrip; token += 4) {
    const int8_t* rows = strips[token / kKvStrip] + token % kKvStrip * row_bytes;
    hn::Vec<D32> parts[kQueries][2];
    for (uint32_t t = 0; t < 4; t += kTokens, rows += kTokens * row_bytes) {
      Sum<D8> sums[kQueries][kTokens];
      AddRowProducts<kBits>(words, stride, rows, row_bytes, sums);
      for (uint32_t q = 0; q < kQueries; ++q) {
        for (uint32_t i = 0; i < kTokens; i += 2) {
          parts[q][(t + i) / 2] = AddInPart(sums[q][i].Pairs(), sums[q][i + 1].Pairs());
        }
      }
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      hn::StoreU(hn::ConvertTo(d, AddLanes(parts[q][0], parts[q][1])), d,
                 out + size_t{q} * kDotTokens + token);
    }
  }
}

template <uint32_t kBits>
void ScoreRowsOf(const int16_t* words, size_t stride, uint32_t n_queries,
                 const int8_t* const* strips, uint32_t n_blocks, uint32_t row_bytes, float* out) {
  constexpr decltype(&ScoreStrips<kBits, 1>) kScore[] = {
      ScoreStrips<kBits, 1>, ScoreStrips<kBits, 2>, ScoreStrips<kBits, 3>, ScoreStrips<kBits, 4>};
  for (uint32_t q = 0; q < n_queries; q += kGroup) {
    kScore[Min(n_queries - q, kGroup) - 1](words + q * stride, stride, strips,
                                           n_blocks * (kDotBlock / kKvStrip), row_bytes,
                                           out + size_t{q} * kDotTokens);
  }
}

// Stores the words of each query at the start of its spread.
void SpreadQueries(const DotQueries& queries, uint32_t dim) {
  JoinQueries(queries, 0, queries.n, dim, DotSpreadBytes(dim) / sizeof(int16_t),
              reinterpret_cast<int16_t*>(queries.spread));
}

void ScoreRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
               uint32_t dim, float* out) {
  ScoreRowsOf<0>(reinterpret_cast<const int16_t*>(queries.spread),
                 DotSpreadBytes(dim) / sizeof(int16_t), queries.n, strips, n_blocks, dim, out);
}

void ScorePackedRows(const DotQueries& queries, const int8_t* const* strips, uint32_t n_blocks,
                     uint32_t row_bytes, uint32_t bits, float* out) {
  const auto score = bits == 4 ? ScoreRowsOf<4> : ScoreRowsOf<2>;
  score(queries.words, 4 * queries.stride, queries.n, strips, n_blocks, row_bytes, out);
}

// Some channels of rows of values, as many as D has lanes.
template <class D, uint32_t kBits>
struct Channels {
  static constexpr bool kTwoBlocks = kBits != 0 && HWY_MAX_LANES_D(D) == 32;
  // kBits 0: bytes [at, at + left) of a row. Otherwise the value at bit `shift` of bytes [at, at +
  // Lanes(D)); if a row is one block, the second block has the row's next value instead. Values
  // stay where they are in their bytes, which makes sums larger by a power of two.
  size_t at, left;
  bool one_block;
  hn::Vec<D> mask;
  float scales[2];  // of the sums of the first block and of the second

  HWY_INLINE Channels(size_t row_bytes, uint32_t channel, uint32_t n_left)
      : at(kBits == 0 ? channel : channel % row_bytes), left(n_left), one_block(row_bytes == 16) {
    const D d;
    const auto shift = kBits == 0 ? 0 : static_cast<uint32_t>(channel / row_bytes) * kBits;
    constexpr uint32_t kValue = (1 << kBits) - 1;
    mask = hn::Set(d, static_cast<int8_t>(kValue << shift));
    scales[0] = scales[1] = 1.0f / static_cast<float>(1u << shift);
    if constexpr (kTwoBlocks) {
      if (!one_block) return;
      const hn::Half<D> half;
      const auto second = hn::Set(half, static_cast<int8_t>(kValue << (shift + kBits)));
      mask = hn::Combine(d, second, hn::LowerHalf(half, mask));
      scales[1] = 1.0f / static_cast<float>(1u << (shift + kBits));
    }
  }

  HWY_INLINE hn::Vec<D> Load(const int8_t* row) const {
    const D d;
    if constexpr (kTwoBlocks) return one_block ? hn::LoadDup128(d, row) : hn::LoadU(d, row + at);
    if constexpr (kBits != 0) return hn::LoadU(d, row + at);
    return left >= HWY_MAX_LANES_D(D) ? hn::LoadU(d, row + at) : hn::LoadN(d, row + at, left);
  }
  HWY_INLINE hn::Vec<D> Values(hn::Vec<D> bytes) const {
    return kBits == 0 ? bytes : hn::And(bytes, mask);
  }
};

// Widens the lower (upper) half of each block.
template <bool kSigned, bool kUpper, class D>
HWY_INLINE hn::Vec<Of16<D>> Widen(D d, hn::Vec<D> x) {
  const Of16<D> d16;
  const auto zero = hn::Zero(d);
  if constexpr (kSigned) {
    return hn::ShiftRight<8>(hn::BitCast(
        d16, kUpper ? hn::InterleaveUpper(d, zero, x) : hn::InterleaveLower(d, zero, x)));
  } else {
    return hn::BitCast(d16,
                       kUpper ? hn::InterleaveUpper(d, x, zero) : hn::InterleaveLower(d, x, zero));
  }
}

// Adds the products of two rows, given kQueries pairs of weights kDotTokens apart, for 4 * kVectors
// channels of each block of D from 4 * kFirst on.
template <class D, uint32_t kBits, uint32_t kFirst, uint32_t kQueries, uint32_t kVectors>
HWY_INLINE void AddPair(const Channels<D, kBits>& channels, const int16_t* words,
                        const int8_t* rows, size_t row_bytes, Sum<D> (&sums)[kQueries][kVectors]) {
  const D d;
  constexpr bool kSigned = kBits == 0;
  const auto a = channels.Load(rows), b = channels.Load(rows + row_bytes);
  hn::Vec<Of16<D>> x[kVectors];
  if constexpr (kFirst == 0) {
    const auto both = channels.Values(hn::InterleaveLower(d, a, b));
    x[0] = Widen<kSigned, false>(d, both);
    x[1] = Widen<kSigned, true>(d, both);
  }
  if constexpr (kFirst + kVectors == 4) {
    const auto both = channels.Values(hn::InterleaveUpper(d, a, b));
    x[kVectors - 2] = Widen<kSigned, false>(d, both);
    x[kVectors - 1] = Widen<kSigned, true>(d, both);
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    const auto w = Pair<D>(words + q * kDotTokens);
    for (uint32_t v = 0; v < kVectors; ++v) sums[q][v].Add(x[v], w);
  }
}

// Adds 4 * kVectors channels of each block of D, from 4 * kFirst on, of n_strips strips.
template <class D, uint32_t kBits, uint32_t kQueries, uint32_t kFirst, uint32_t kVectors>
HWY_INLINE void AddChannels(const Channels<D, kBits>& channels, const int16_t* words,
                            const float* factors, const int8_t* const* strips, uint32_t n_strips,
                            size_t row_bytes, size_t stride, float* out) {
  Sum<D> sums[kQueries][kVectors];
  for (auto& query : sums) {
    for (auto& sum : query) sum.Clear();
  }
  // After the last token, rows up to a whole strip are readable and have zero weights.
  for (uint32_t i = 0; i < n_strips; ++i, words += kKvStrip) {
    const int8_t* rows = strips[i];
    AddPair<D, kBits, kFirst>(channels, words, rows, row_bytes, sums);
    AddPair<D, kBits, kFirst>(channels, words + 2, rows + 2 * row_bytes, row_bytes, sums);
    AddPair<D, kBits, kFirst>(channels, words + 4, rows + 4 * row_bytes, row_bytes, sums);
    AddPair<D, kBits, kFirst>(channels, words + 6, rows + 6 * row_bytes, row_bytes, sums);
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    float* to = out + q * stride + size_t{4} * kFirst;
    for (uint32_t v = 0; v < kVectors; v += 2, to += 8) {
      const auto first = sums[q][v].Pairs(), second = sums[q][v + 1].Pairs();
      const float factor = factors[q] * channels.scales[0];
      if constexpr (HWY_MAX_LANES_D(D) == 16) {
        AddTo(first, factor, to);
        AddTo(second, factor, to + 4);
      } else {
        const Of32<D> d32;
        AddTo(hn::ConcatLowerLower(d32, second, first), factor, to);
        AddTo(hn::ConcatUpperUpper(d32, second, first), factors[q] * channels.scales[1], to + 16);
      }
    }
  }
}

template <class D, uint32_t kBits, uint32_t kQueries>
void AddLanesOf(const int16_t* words, const float* factors, const int8_t* const* strips,
                uint32_t n_strips, size_t row_bytes, uint32_t channel, uint32_t left, size_t stride,
                float* out) {
  const Channels<D, kBits> channels(row_bytes, channel, left);
  if constexpr (4 * kQueries <= kMaxSums) {
    AddChannels<D, kBits, kQueries, 0, 4>(channels, words, factors, strips, n_strips, row_bytes,
                                          stride, out);
  } else {
    AddChannels<D, kBits, kQueries, 0, 2>(channels, words, factors, strips, n_strips, row_bytes,
                                          stride, out);
    AddChannels<D, kBits, kQueries, 2, 2>(channels, words, factors, strips, n_strips, row_bytes,
                                          stride, out);
  }
}

// Adds channels [channel, channel + n_channels).
template <uint32_t kBits, uint32_t kQueries>
void AddRows(const int16_t* words, const float* factors, const int8_t* const* strips,
             uint32_t n_strips, uint32_t row_bytes, uint32_t channel, uint32_t n_channels,
             size_t stride, float* out) {
  constexpr uint32_t kLanes = HWY_MAX_LANES_D(D8);
  const uint32_t end = channel + n_channels;
  while (channel < end) {
    // A row of one block has several values of each channel's byte in its vectors.
    const uint32_t of_row = kBits == 0 || row_bytes == 16 ? end : row_bytes;
    const uint32_t left = Min(end - channel, of_row - channel % of_row);
    if (left >= kLanes) {
      AddLanesOf<D8, kBits, kQueries>(words, factors, strips, n_strips, row_bytes, channel, left,
                                      stride, out);
      channel += kLanes;
      out += kLanes;
    } else {
      AddLanesOf<D8Block, kBits, kQueries>(words, factors, strips, n_strips, row_bytes, channel,
                                           left, stride, out);
      channel += kDotBlock;
      out += kDotBlock;
    }
  }
}

template <uint32_t kBits>
void AddRowsOf(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
               uint32_t row_bytes, uint32_t channel, uint32_t n_channels, size_t stride,
               float* sums) {
  constexpr decltype(&AddRows<kBits, 1>) kAdd[] = {AddRows<kBits, 1>, AddRows<kBits, 2>,
                                                   AddRows<kBits, 3>, AddRows<kBits, 4>};
  HWY_ALIGN int16_t joined[kGroup * kDotTokens];
  const auto n_strips = static_cast<uint32_t>(CeilDiv(n_quads, kKvStrip / 4));
  for (uint32_t q = 0; q < weights.n; q += kGroup) {
    const uint32_t n = Min(weights.n - q, kGroup);
    const int16_t* words = joined;
    if constexpr (kBits == 0) {
      JoinWeights(weights, q, n, 2 * n_quads, joined);
    } else {
      words = weights.words + size_t{q} * kDotTokens;
    }
    kAdd[n - 1](words, weights.factors + q, strips, n_strips, row_bytes, channel, n_channels,
                stride, sums + q * stride);
  }
}

void AddValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                  uint32_t dim, size_t stride, float* sums) {
  AddRowsOf<0>(weights, strips, n_quads, dim, 0, dim, stride, sums);
}

void AddPackedValueRows(const DotWeights& weights, const int8_t* const* strips, uint32_t n_quads,
                        uint32_t row_bytes, uint32_t bits, uint32_t channel, uint32_t n_channels,
                        size_t stride, float* sums) {
  const auto add = bits == 4 ? AddRowsOf<4> : AddRowsOf<2>;
  add(weights, strips, n_quads, row_bytes, channel, n_channels, stride, sums);
}
}  // namespace
}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // ARN_HAS_WORD_DOT

#endif  // per-target include guard
