// Attention tiles of quantised pages, x = least + scale * value. The integer values are multiplied
// directly, and their ranges are applied elsewhere:
//   keys    have ranges per channel: the queries are multiplied by the scales, once per range of
//           tokens, and q . least is added to the scores
//   values  have ranges per token and channel group: the weights are multiplied by the scales, as
//           for int8 values, and each channel adds the sum of weight * least
// With an Int8Dot, the scaled queries and weights are quantised to 16 bits. Rows of 4 or 2 bits are
// multiplied in place if the Int8Dot can and queries are few. Otherwise they are packed as if they
// were bytes, and split in the packed order: the upper bits of a row are later channels. Without an
// Int8Dot, or if ranges are narrower than one dot product, values are widened to floats.
#if defined(ARN_KERNELS_CPU_SIMD_ATTENTION_QUANTISED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_ATTENTION_QUANTISED_INL_H_
#undef ARN_KERNELS_CPU_SIMD_ATTENTION_QUANTISED_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_ATTENTION_QUANTISED_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/attention_float-inl.h"
#include "kernels/cpu/simd/attention_int8-inl.h"
#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Splits n bytes (a multiple of 16) of packed kBits values: value j of byte i becomes byte j * n +
// i of `out`. The input is XORed with `bias`.
template <uint32_t kBits, class D8>
HWY_INLINE size_t SplitWith(D8 d8, const uint8_t* from, size_t n, uint8_t bias, size_t first,
                            uint8_t* out) {
  const hn::Repartition<uint16_t, D8> d16;
  const auto turned = hn::Set(d8, bias), mask = hn::Set(d8, uint8_t{(1u << kBits) - 1});
  size_t i = first;
  for (; i + hn::Lanes(d8) <= n; i += hn::Lanes(d8)) {
    auto x = hn::BitCast(d16, hn::Xor(hn::LoadU(d8, from + i), turned));
    for (uint32_t j = 0; j < 8 / kBits; ++j, x = hn::ShiftRight<kBits>(x)) {
      hn::StoreU(hn::And(hn::BitCast(d8, x), mask), d8, out + j * n + i);
    }
  }
  return i;
}
template <uint32_t kBits>
HWY_INLINE void SplitBits(const uint8_t* from, size_t n, uint8_t bias, uint8_t* out) {
  const size_t done = SplitWith<kBits>(hn::ScalableTag<uint8_t>(), from, n, bias, 0, out);
  SplitWith<kBits>(hn::CappedTag<uint8_t, 16>(), from, n, bias, done, out);
}
HWY_INLINE void Split(uint32_t bits, const uint8_t* from, size_t n, uint8_t bias, uint8_t* out) {
  return bits == 4 ? SplitBits<4>(from, n, bias, out) : SplitBits<2>(from, n, bias, out);
}

// Stores a vector of f16 numbers as floats.
template <class V16>
HWY_INLINE void StoreHalves(V16 bits, float* out) {
  const D d;
  hn::StoreU(hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits)), d, out);
}

// Loads n f16 pairs as two rows of floats, zero-padded to whole vectors.
HWY_INLINE void LoadPairs(const uint16_t* pairs, size_t n, float* scale, float* least) {
  const hn::Rebind<uint16_t, D> d16;
  hn::Vec<decltype(d16)> s, l;
  const auto separate = [&](const uint16_t* from, size_t i) HWY_ATTR {
    hn::LoadInterleaved2(d16, from, s, l);
    StoreHalves(s, scale + i);
    StoreHalves(l, least + i);
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) separate(pairs + 2 * i, i);
  if (i == n) return;
  uint16_t left[2 * kLanes] = {};
  std::memcpy(left, pairs + 2 * i, 2 * (n - i) * sizeof(uint16_t));
  separate(left, i);
}

// Arguments for computing a quantised tile.
struct QuantisedTile {
  const Int8Dot& dot;
  const KvGroup& group;
  const AttentionScratch& s;
  const Int8Rows& rows;
  uint32_t position;  // of the first token
  // Queries [first, first + n).
  uint32_t first, n;
  bool takes_rows;  // multiplies rows in place if it can

  bool TakesPackedRows(uint32_t bits, uint32_t row_bytes) const {
    return takes_rows && bits != 0 && dot.score_packed_rows != nullptr &&
           row_bytes % kPackedRowUnit == 0;
  }
};

// Applies a key range to a query: folded[stride] = q * scale. Returns q . least.
HWY_INLINE float FoldQuery(const float* q, const float* scale, const float* least, size_t stride,
                           float* folded) {
  const D d;
  V sum = hn::Zero(d);
  for (size_t i = 0; i < stride; i += kLanes) {
    const V x = hn::LoadU(d, q + i);
    hn::StoreU(hn::Mul(x, hn::LoadU(d, scale + i)), d, folded + i);
    sum = hn::MulAdd(x, hn::LoadU(d, least + i), sum);
  }
  return hn::ReduceSum(d, sum);
}

// Stores the low 16 bits of stride integers, as two planes of signed bytes; integer(i) has
// [i, i + kLanes).
template <typename Integer>
HWY_INLINE void StorePlanes(size_t stride, const Integer& integer, uint8_t* high, uint8_t* low) {
  const hn::Repartition<uint16_t, D> d16;
  const hn::Repartition<uint8_t, D> d8;
  constexpr size_t kFour = 4 * kLanes;
  // Four vectors at a time; `last` is the last there is.
  const auto four = [&](size_t i, size_t last, uint8_t* to_high, uint8_t* to_low) HWY_ATTR {
    const auto at = [&](size_t v)
                        HWY_ATTR { return hn::BitCast(d16, integer(Min(i + v * kLanes, last))); };
    const auto a = hn::ConcatEven(d16, at(1), at(0)), b = hn::ConcatEven(d16, at(3), at(2));
    const auto half = hn::Set(d16, uint16_t{128});
    const auto upper_a = hn::BitCast(d8, hn::Add(a, half));
    const auto upper_b = hn::BitCast(d8, hn::Add(b, half));
    hn::StoreU(hn::ConcatOdd(d8, upper_b, upper_a), d8, to_high);
    hn::StoreU(hn::ConcatEven(d8, hn::BitCast(d8, b), hn::BitCast(d8, a)), d8, to_low);
  };
  size_t i = 0;
  for (; i + kFour <= stride; i += kFour) four(i, stride - kLanes, high + i, low + i);
  if (i < stride) {
    uint8_t planes[2][kFour];
    four(i, stride - kLanes, planes[0], planes[1]);
    std::memcpy(high + i, planes[0], stride - i);
    std::memcpy(low + i, planes[1], stride - i);
  }
}

// The same, as words.
template <typename Integer>
HWY_INLINE void StoreWords(size_t stride, const Integer& integer, int16_t* words) {
  const hn::Repartition<int16_t, D> d16;
  const hn::Rebind<int16_t, D> half;
  size_t i = 0;
  for (; i + 2 * kLanes <= stride; i += 2 * kLanes) {
    hn::StoreU(hn::OrderedDemote2To(d16, integer(i), integer(i + kLanes)), d16, words + i);
  }
  if (i < stride) hn::StoreU(hn::DemoteTo(half, integer(i)), half, words + i);
}

// FoldQuery(), with the result quantised to 16 bits: folded = *factor * integer. Writes the
// integers as words if `words` is not null, otherwise as two planes of `stride` signed bytes, 256 *
// high + low. If a folded query is not finite the factor is NaN. Keys of 4 or 2 bits need no bias,
// and so no sums of the planes.
HWY_INLINE float QuantizeFolded(const float* q, const float* scale, const float* least,
                                size_t stride, float* folded, int32_t* high, int32_t* low,
                                int16_t* words, float* factor) {
  const D d;
  const hn::RebindToSigned<D> di;
  constexpr float kLargest = 127 * 256 + 127;
  V sum = hn::Zero(d);
  // As integers, magnitudes keep their order, and non-finite values are the largest.
  const auto size_bits = hn::Set(di, 0x7FFFFFFF);
  auto largest = hn::Zero(di);
  for (size_t i = 0; i < stride; i += kLanes) {
    const V x = hn::LoadU(d, q + i), y = hn::Mul(x, hn::LoadU(d, scale + i));
    hn::StoreU(y, d, folded + i);
    largest = hn::Max(largest, hn::And(hn::BitCast(di, y), size_bits));
    sum = hn::MulAdd(x, hn::LoadU(d, least + i), sum);
  }
  const float max = F32FromBits(static_cast<uint32_t>(hn::ReduceMax(di, largest)));
  const bool is_finite = max < HUGE_VALF;
  // Also zeros if the quotient would overflow.
  const bool is_zero = !is_finite || !(max > kLargest / 1e38f);
  *factor = !is_finite ? std::nanf("") : is_zero ? 0.0f : max / kLargest;
  const V inverse = hn::Set(d, is_zero ? 0.0f : kLargest / max);
  const V round = hn::Set(d, kRoundToInteger);
  if (!is_finite) std::memset(folded, 0, stride * sizeof(float));  // 0 times infinity is not 0
  const auto rounded = [&](size_t i) HWY_ATTR {
    return hn::BitCast(di, hn::MulAdd(hn::LoadU(d, folded + i), inverse, round));
  };
  if (words == nullptr) {
    StorePlanes(stride, rounded, reinterpret_cast<uint8_t*>(high), reinterpret_cast<uint8_t*>(low));
  } else {
    const auto zero = hn::BitCast(di, round);
    StoreWords(
        stride, [&](size_t i) HWY_ATTR { return hn::Sub(rounded(i), zero); }, words);
  }
  return hn::ReduceSum(d, sum);
}

// Computes the scores of tokens [begin, begin + n_tokens), which share a range, from packed keys,
// or from rows.
HWY_INLINE void ScoreRange(const QuantisedTile& tile, uint32_t begin, uint32_t n_tokens) {
  const AttentionScratch& s = tile.s;
  const D d;
  float* scale = s.ranges;
  float* least = scale + s.stride;
  float* folded = least + s.stride;
  const uint32_t dim = tile.group.head_dim;
  const uint32_t bits = tile.group.quantised_k_bits;
  const bool takes_rows = tile.TakesPackedRows(bits, tile.rows.k_row_bytes);
  // The planes' memory, if there are words instead.
  auto* words = takes_rows && tile.dot.packed_takes_words
                    ? reinterpret_cast<int16_t*>(s.folded_high)
                    : nullptr;
  const auto* pairs = static_cast<const uint16_t*>(tile.rows.k_scales[begin / kKvStrip]);
  LoadPairs(pairs, dim, scale, least);
  for (size_t i = AlignUp(dim, kLanes); i < s.stride; ++i) scale[i] = least[i] = 0.0f;
  for (uint32_t q = 0; q < tile.n; ++q) {
    const float* from = s.q + size_t{tile.first + q} * s.stride;
    s.folded_least[q] = QuantizeFolded(
        from, scale, least, s.stride, folded, s.folded_high + size_t{q} * s.quads,
        s.folded_low + size_t{q} * s.quads,
        words == nullptr ? nullptr : words + size_t{q} * s.stride, s.folded_factors + q);
    s.no_sums[q] = 0;
  }
  const DotQueries queries = {s.folded_high, s.folded_low, s.no_sums, s.no_sums,
                              s.quads,       tile.n,       nullptr,   words};
  float* scores = s.scores + size_t{tile.first} * kDotTokens + begin;
  const auto n_blocks = static_cast<uint32_t>(CeilDiv(n_tokens, kDotBlock));
  if (takes_rows) {
    tile.dot.score_packed_rows(queries, tile.rows.k + begin / kKvStrip, n_blocks,
                               tile.rows.k_row_bytes, bits, scores);
  } else {
    tile.dot.scores(queries, s.quantised_keys + begin / kDotBlock * tile.dot.KeyBlockBytes(dim),
                    n_blocks, dim, scores);
  }
  for (uint32_t q = 0; q < tile.n; ++q, scores += kDotTokens) {
    const V factor = hn::Set(d, s.folded_factors[q]), constant = hn::Set(d, s.folded_least[q]);
    for (size_t i = 0; i < n_blocks * kDotBlock; i += kLanes) {
      hn::StoreU(hn::MulAdd(hn::LoadU(d, scores + i), factor, constant), d, scores + i);
    }
  }
}

// Computes the scores of a tile's tokens and prefetches `next`.
HWY_INLINE void ScoreQuantised(const QuantisedTile& tile, const Int8Rows& next) {
  const AttentionScratch& s = tile.s;
  const Int8Rows& rows = tile.rows;
  const Int8Dot& dot = tile.dot;
  const uint32_t dim = tile.group.head_dim, bits = tile.group.quantised_k_bits;
  const size_t block_bytes = dot.KeyBlockBytes(dim);
  const bool takes_rows = tile.TakesPackedRows(bits, rows.k_row_bytes);
  const auto n_blocks = static_cast<uint32_t>(CeilDiv(rows.n, kDotBlock));
  for (uint32_t i = 0; i < n_blocks; ++i) {
    PrefetchBlock(next, i * kDotBlock);
    if (takes_rows) continue;
    uint8_t* keys = s.quantised_keys + i * block_bytes;
    const int8_t* const* strips = rows.k + i * (kDotBlock / kKvStrip);
    if (bits == 0) {
      dot.pack_keys(strips, 1, dim, keys);
    } else {
      dot.pack_keys(strips, 1, rows.k_row_bytes, s.unsplit);
      Split(bits, s.unsplit, kDotBlock * size_t{rows.k_row_bytes}, dot.key_bias, keys);
    }
  }
  if (bits != 0) {
    const uint32_t range = tile.group.group_size;
    for (uint32_t t = 0; t < rows.n;) {
      const uint32_t n = Min(rows.n - t, range - (tile.position + t) % range);
      ScoreRange(tile, t, n);
      t += n;
    }
    return;
  }
  const D d;
  const size_t at = tile.first;
  const DotQueries queries = {s.q_high + at * s.quads,
                              s.q_low + at * s.quads,
                              s.q_high_sums + at,
                              s.q_low_sums + at,
                              s.quads,
                              tile.n,
                              nullptr};
  dot.scores(queries, s.quantised_keys, n_blocks, dim, s.scores + at * kDotTokens);
  float scales[kDotTokens];
  LoadScales(rows.k_scales, rows.n, scales);
  for (uint32_t q = tile.first; q < tile.first + tile.n; ++q) {
    float* scores = s.scores + size_t{q} * kDotTokens;
    const V factor = hn::Set(d, s.q_factors[q]);
    for (size_t i = 0; i < kDotTokens; i += kLanes) {
      const V scale = hn::Mul(factor, hn::LoadU(d, scales + i));
      hn::StoreU(hn::Mul(hn::LoadU(d, scores + i), scale), d, scores + i);
    }
  }
}

// Loads the value ranges of n tokens of a page: the scale of range g and token t goes to scale[g *
// width + t], zero-padded after the last token to whole vectors. scratch: 2 * n * n_ranges floats,
// each half rounded up to kMaxLanes.
HWY_INLINE void LoadValueRanges(const uint16_t* pairs, uint32_t n, uint32_t n_ranges, size_t width,
                                float* scale, float* least, float* scratch) {
  if (n_ranges == 1) return LoadPairs(pairs, n, scale, least);
  if (n_ranges == 2 && n % kLanes == 0) {
    const hn::Rebind<uint16_t, D> d16;
    hn::Vec<decltype(d16)> s[2], l[2];
    for (size_t i = 0; i < n; i += kLanes, pairs += 4 * kLanes) {
      hn::LoadInterleaved4(d16, pairs, s[0], l[0], s[1], l[1]);
      for (size_t g = 0; g < 2; ++g) {
        StoreHalves(s[g], scale + g * width + i);
        StoreHalves(l[g], least + g * width + i);
      }
    }
    return;
  }
  const size_t half = AlignUp(size_t{n} * n_ranges, kMaxLanes);
  LoadPairs(pairs, size_t{n} * n_ranges, scratch, scratch + half);
  for (float* to : {scale, least}) {
    const float* from = to == scale ? scratch : scratch + half;
    for (uint32_t g = 0; g < n_ranges; ++g) {
      float* row = to + g * width;
      for (uint32_t t = 0; t < n; ++t) row[t] = from[t * n_ranges + g];
      for (size_t t = n; t < AlignUp(n, kLanes); ++t) row[t] = 0.0f;
    }
  }
}

// Multiplies kTokens weights by their scales. Returns the sum of weight * least, which is added to
// all channels of the range.
template <size_t kTokens>
HWY_INLINE float ScaleWeights(const float* scale, const float* least, TileScores<kTokens>* w) {
  const D d;
  V sum = hn::Zero(d);
  for (size_t i = 0; i < w->kVectors; ++i) {
    sum = hn::MulAdd(w->v[i], hn::LoadU(d, least + i * kLanes), sum);
    w->v[i] = hn::Mul(w->v[i], hn::LoadU(d, scale + i * kLanes));
  }
  return hn::ReduceSum(d, sum);
}

// x[n] += y, rounded up to whole vectors.
HWY_INLINE void AddToAll(float y, size_t n, float* x) {
  const D d;
  const V add = hn::Set(d, y);
  for (size_t i = 0; i < n; i += kLanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), add), d, x + i);
}

// Adds the weighted values of a tile's tokens. The weights have replaced the scores.
HWY_INLINE void AddQuantisedValues(const QuantisedTile& tile) {
  const AttentionScratch& s = tile.s;
  const Int8Rows& rows = tile.rows;
  const Int8Dot& dot = tile.dot;
  const D d;
  const uint32_t dim = tile.group.head_dim, bits = tile.group.quantised_v_bits;
  const uint32_t width = DotValueWidth(dim), n_quads = DotQuads(rows.n);
  const uint32_t range = bits == 0 ? dim : Min(tile.group.group_size, dim);
  const uint32_t n_ranges = KvGroupsOf(dim, range);
  const bool takes_rows = tile.TakesPackedRows(bits, rows.v_row_bytes);
  float* scale = s.ranges;
  float* least = scale + size_t{n_ranges} * kDotTokens;
  if (bits == 0) {
    dot.pack_values(rows.v, n_quads, dim, s.values);
    LoadScales(rows.v_scales, rows.n, scale);
  } else {
    if (!takes_rows) {
      dot.pack_values(rows.v, n_quads, rows.v_row_bytes, s.unsplit);
      const size_t from_bytes = size_t{DotValueWidth(rows.v_row_bytes)} * dot.unit;
      for (uint32_t t = 0, i = 0; t < 4 * n_quads; t += dot.unit, ++i) {
        Split(bits, s.unsplit + i * from_bytes, size_t{rows.v_row_bytes} * dot.unit, 0,
              s.values + i * size_t{width} * dot.unit);
      }
    }
    for (uint32_t t = 0; t < kDotTokens; t += kDotBlock) {
      if (t < rows.n) {  // a block's tokens are in one page
        LoadValueRanges(static_cast<const uint16_t*>(rows.v_scales[t / kKvStrip]), kDotBlock,
                        n_ranges, kDotTokens, scale + t, least + t,
                        least + size_t{n_ranges} * kDotTokens);
        continue;
      }
      for (uint32_t g = 0; g < 2 * n_ranges; ++g) {
        std::memset(scale + g * kDotTokens + t, 0, kDotBlock * sizeof(float));
      }
    }
  }
  const size_t at = size_t{tile.first} * kDotTokens;
  const DotWeights weights = {s.w_high + at, s.w_low + at, s.w_factors + tile.first, tile.n};
  for (uint32_t g = 0; g < n_ranges; ++g) {
    const uint32_t channel = g * range, n_channels = Min(range, dim - channel);
    for (uint32_t q = tile.first; q < tile.first + tile.n; ++q) {
      TileScores<kDotTokens> w;
      w.Load(s.scores + size_t{q} * kDotTokens);
      float constant = 0.0f;
      if (bits == 0) {
        for (size_t i = 0; i < w.kVectors; ++i) {
          w.v[i] = hn::Mul(w.v[i], hn::LoadU(d, scale + i * kLanes));
        }
      } else {
        constant = ScaleWeights(scale + g * kDotTokens, least + g * kDotTokens, &w);
      }
      s.w_factors[q] = QuantizeWeights(dot, w, s.w_high + size_t{q} * kDotTokens,
                                       s.w_low + size_t{q} * kDotTokens);
      if (bits != 0) AddToAll(constant, n_channels, s.sums + size_t{q} * s.stride + channel);
    }
    float* sums = s.sums + size_t{tile.first} * s.stride + channel;
    if (takes_rows) {
      dot.add_packed_value_rows(weights, rows.v, n_quads, rows.v_row_bytes, bits, channel,
                                n_channels, s.stride, sums);
    } else {
      dot.add_values(weights, dot.ValueAt(s.values, channel), n_quads, width, n_channels, s.stride,
                     sums);
    }
  }
}

// Tokens [slot, slot + n) of one page, n <= kFloatTokens, with values widened to floats.
struct QuantisedSlots {
  const KvGroup* group;
  const AttentionScratch& s;
  uint32_t slot, n;
  // Queries [first, first + n_queries).
  uint32_t first, n_queries;
};

// Computes the scores of the slots; `k` has their widened keys.
HWY_INLINE void ScoreSlots(const QuantisedSlots& slots, const KvHeadBlock& block, const Rows& k) {
  const AttentionScratch& s = slots.s;
  const D d;
  float* scale = s.v;  // s.v is free: values are loaded later
  float* least = scale + s.stride;
  float* folded = least + s.stride;
  const uint32_t dim = slots.group->head_dim, range = slots.group->group_size;
  const size_t width = AlignUp(dim, kLanes);
  for (uint32_t t = 0, n = 0; t < slots.n; t += n) {
    const uint32_t slot = slots.slot + t;
    n = Min(slots.n - t, range - slot % range);
    LoadPairs(static_cast<const uint16_t*>(block.scales) + size_t{2} * (slot / range) * dim, dim,
              scale, least);
    for (uint32_t q = slots.first; q < slots.first + slots.n_queries; ++q) {
      float* scores = s.scores + size_t{q} * kDotTokens + t;
      const V constant =
          hn::Set(d, FoldQuery(s.q + size_t{q} * s.stride, scale, least, width, folded));
      Dot(folded, {k.data + t * k.stride, k.stride}, n, width, scores);
      for (size_t i = 0; i < n; i += kLanes) {
        hn::StoreU(hn::Add(hn::LoadU(d, scores + i), constant), d, scores + i);
      }
    }
  }
}

// Adds the widened values `v` of the slots. The weights have replaced the scores.
HWY_INLINE void AddSlots(const QuantisedSlots& slots, const KvHeadBlock& block, float* v) {
  const AttentionScratch& s = slots.s;
  const uint32_t dim = slots.group->head_dim, range = Min(slots.group->group_size, dim);
  const uint32_t n_ranges = KvGroupsOf(dim, range);
  const Rows rows = {v, s.stride};
  const auto* pairs =
      static_cast<const uint16_t*>(block.scales) + size_t{2} * slots.slot * n_ranges;
  float* weights = s.scores + size_t{slots.first} * kDotTokens;
  float* sums = s.sums + size_t{slots.first} * s.stride;
  float* scale = s.k;  // s.k is free: keys are no longer needed
  if (n_ranges > 1 && range % kLanes != 0) {
    // A range ends inside a vector: dequantises the values instead.
    float* least = scale + AlignUp(n_ranges, kLanes);
    for (uint32_t t = 0; t < slots.n; ++t, v += s.stride, pairs += 2 * n_ranges) {
      LoadPairs(pairs, n_ranges, scale, least);
      for (uint32_t i = 0; i < dim; ++i) v[i] = least[i / range] + scale[i / range] * v[i];
    }
    return AddValueRows(weights, slots.n_queries, rows, slots.n, AlignUp(dim, kLanes), s.stride,
                        sums);
  }
  float* least = scale + size_t{n_ranges} * kFloatTokens;
  // Zero weights after the last token still need finite scales.
  if (slots.n < kFloatTokens) {
    std::memset(scale, 0, size_t{2} * n_ranges * kFloatTokens * sizeof(float));
  }
  LoadValueRanges(pairs, slots.n, n_ranges, kFloatTokens, scale, least,
                  least + size_t{n_ranges} * kFloatTokens);
  for (uint32_t g = 0; g < n_ranges; ++g) {
    const uint32_t channel = g * range;
    const size_t n_channels = AlignUp(Min(range, dim - channel), kLanes);
    // Stores the scaled weights after the tile's own, which use at most half of the row.
    for (uint32_t q = 0; q < slots.n_queries; ++q) {
      TileScores<kFloatTokens> w;
      w.Load(weights + size_t{q} * kDotTokens);
      const float constant = ScaleWeights(scale + g * kFloatTokens, least + g * kFloatTokens, &w);
      w.Store(weights + size_t{q} * kDotTokens + kFloatTokens);
      AddToAll(constant, n_channels, sums + size_t{q} * s.stride + channel);
    }
    AddValueRows(weights + kFloatTokens, slots.n_queries, {v + channel, s.stride}, slots.n,
                 n_channels, s.stride, sums + channel);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
