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
#include "kernels/cpu/simd/fold_queries-inl.h"
#include "kernels/cpu/simd/kv_ranges-inl.h"
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

// Computes the unscaled scores of tokens that share ranges, from packed keys or from rows. The
// folded queries start at row `row`.
HWY_INLINE void ScoreRange(const QuantisedTile& tile, const KeyRange& range, size_t row,
                           const int16_t* words) {
  const AttentionScratch& s = tile.s;
  const uint32_t dim = tile.group.head_dim, bits = tile.group.quantised_k_bits;
  const DotQueries queries = {s.folded_high + row * s.quads,
                              s.folded_low + row * s.quads,
                              s.no_sums,
                              s.no_sums,
                              s.quads,
                              tile.n,
                              nullptr,
                              words == nullptr ? nullptr : words + row * s.stride};
  float* scores = s.scores + size_t{tile.first} * kDotTokens + range.begin;
  const auto n_blocks = static_cast<uint32_t>(CeilDiv(range.n, kDotBlock));
  if (tile.TakesPackedRows(bits, tile.rows.k_row_bytes)) {
    tile.dot.score_packed_rows(queries, tile.rows.k + range.begin / kKvStrip, n_blocks,
                               tile.rows.k_row_bytes, bits, scores);
  } else {
    tile.dot.scores(queries,
                    s.quantised_keys + range.begin / kDotBlock * tile.dot.KeyBlockBytes(dim),
                    n_blocks, dim, scores);
  }
}

// Folds the queries with n ranges and computes the scores of their tokens.
HWY_INLINE void ScoreRanges(const QuantisedTile& tile, const KeyRange* ranges, uint32_t n) {
  const AttentionScratch& s = tile.s;
  const bool takes_words = tile.dot.packed_takes_words &&
                           tile.TakesPackedRows(tile.group.quantised_k_bits, tile.rows.k_row_bytes);
  // The planes' memory, if there are words instead.
  auto* words = takes_words ? reinterpret_cast<int16_t*>(s.folded_high) : nullptr;
  for (uint32_t q = 0; q < tile.n; q += kFoldedRows) {
    const size_t row = q * size_t{s.stride}, block = q * size_t{kDotBlocks};
    const QueryFolder folder = {s.q + tile.first * size_t{s.stride} + row,
                                Min(tile.n - q, kFoldedRows),
                                tile.group.head_dim,
                                s.stride,
                                s.ranges,
                                words,
                                reinterpret_cast<uint8_t*>(s.folded_high) + row,
                                reinterpret_cast<uint8_t*>(s.folded_low) + row,
                                s.folded_factors + block,
                                s.folded_least + block};
    folder.Fold(ranges, n);
  }
  // Values of 4 or 2 bits need no bias, and so no sums of the planes.
  std::memset(s.no_sums, 0, tile.n * sizeof(int32_t));
  for (uint32_t r = 0; r < n; ++r) ScoreRange(tile, ranges[r], size_t{r} * tile.n, words);
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
    const uint32_t size = tile.group.group_size;
    KeyRange ranges[kDotBlocks];
    uint32_t n = 0;
    for (uint32_t t = 0; t < rows.n; t += ranges[n++].n) {
      ranges[n] = {t, Min(rows.n - t, size - (tile.position + t) % size),
                   static_cast<const uint16_t*>(rows.k_scales[t / kKvStrip])};
    }
    // Many queries fill the memory of all ranges' folded queries, and need no overlap.
    const uint32_t together = takes_rows ? n : 1;
    for (uint32_t r = 0; r < n; r += together) ScoreRanges(tile, ranges + r, together);
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

// Loads a query's scores after ScoreQuantised().
HWY_INLINE void LoadScores(const QuantisedTile& tile, uint32_t query,
                           TileScores<kDotTokens>* scores) {
  const D d;
  scores->Load(tile.s.scores + size_t{query} * kDotTokens);
  if (tile.group.quantised_k_bits == 0) return;
  const size_t row = size_t{query - tile.first} * kDotBlocks;
  const float *factors = tile.s.folded_factors + row, *least = tile.s.folded_least + row;
  for (size_t i = 0; i < scores->kVectors; ++i) {
    const size_t block = i * kLanes / kDotBlock;
    scores->v[i] = hn::MulAdd(scores->v[i], hn::Set(d, factors[block]), hn::Set(d, least[block]));
  }
}

// Returns the weights of a tile times the scales of their values.
template <size_t kTokens>
HWY_INLINE TileScores<kTokens> ScaledWeights(const float* weights, const float* scale) {
  const D d;
  TileScores<kTokens> w;
  w.Load(weights);
  for (size_t i = 0; i < w.kVectors; ++i) {
    w.v[i] = hn::Mul(w.v[i], hn::LoadU(d, scale + i * kLanes));
  }
  return w;
}

// Returns by lane the sums of weight * least, which is added to all channels of the range.
template <size_t kTokens>
HWY_INLINE V SumLeast(const float* weights, const float* least) {
  const D d;
  V sum = hn::Zero(d);
  for (size_t i = 0; i < kTokens; i += kLanes) {
    sum = hn::MulAdd(hn::LoadU(d, weights + i), hn::LoadU(d, least + i), sum);
  }
  return sum;
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
  // The planes' memory, if there are words instead.
  auto* words =
      takes_rows && dot.packed_takes_words ? reinterpret_cast<int16_t*>(s.w_high) : nullptr;
  // The weights of many ranges are quantised before the first is used: nothing waits for maxima.
  const uint32_t together = Max(1u, kTileQueries / tile.n);
  for (uint32_t first = 0; first < n_ranges; first += together) {
    const uint32_t end = Min(n_ranges, first + together);
    // Row (g - first) * tile.n + i has query i's weights of range g. Four rows at a time: their
    // largest and their sums are reduced together.
    const uint32_t n_rows = (end - first) * tile.n;
    for (uint32_t g = first, i = 0, done = 0; done < n_rows; done += 4) {
      const uint32_t n = Min(n_rows - done, 4u);
      const float *weights_of[4] = {}, *scale_of[4] = {};
      float* sums_of[4] = {};
      uint32_t n_channels[4] = {};
      V constants[4];
      for (uint32_t j = 0; j < 4; ++j) {
        constants[j] = hn::Zero(d);
        if (j >= n) continue;
        const uint32_t q = tile.first + i;
        weights_of[j] = s.scores + size_t{q} * kDotTokens;
        scale_of[j] = scale + g * kDotTokens;
        if (bits != 0) {
          constants[j] = SumLeast<kDotTokens>(weights_of[j], least + g * kDotTokens);
        }
        sums_of[j] = s.sums + size_t{q} * s.stride + size_t{g} * range;
        n_channels[j] = Min(range, dim - g * range);
        if (++i == tile.n) ++g, i = 0;
      }
      const auto load = [&](uint32_t j) HWY_ATTR {
        return ScaledWeights<kDotTokens>(weights_of[j], scale_of[j]);
      };
      const size_t at = size_t{done} * kDotTokens;
      QuantizeWeightRows(dot, n, load, s.w_high + at, s.w_low + at,
                         words == nullptr ? nullptr : words + at, s.w_factors + done);
      if (bits == 0) continue;
      alignas(16) float constant[4];
      hn::Store(ReduceFour(constants, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); }),
                hn::BlockDFromD<D>(), constant);
      for (uint32_t j = 0; j < n; ++j) AddToAll(constant[j], n_channels[j], sums_of[j]);
    }
    for (uint32_t g = first; g < end; ++g) {
      const uint32_t channel = g * range, n_channels = Min(range, dim - channel);
      const size_t row = size_t{g - first} * tile.n, at = row * kDotTokens;
      const DotWeights weights = {s.w_high + at, s.w_low + at, s.w_factors + row, tile.n,
                                  words == nullptr ? nullptr : words + at};
      float* sums = s.sums + size_t{tile.first} * s.stride + channel;
      if (takes_rows) {
        dot.add_packed_value_rows(weights, rows.v, n_quads, rows.v_row_bytes, bits, channel,
                                  n_channels, s.stride, sums);
      } else {
        dot.add_values(weights, dot.ValueAt(s.values, channel), n_quads, width, n_channels,
                       s.stride, sums);
      }
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

// Replaces widened values [slots, stride] by those that they stand for. scratch: the scales and
// leasts of a row.
HWY_INLINE void Dequantise(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot,
                           uint32_t n, size_t stride, float* scratch, float* rows) {
  const uint32_t dim = group.head_dim, range = Min(group.group_size, dim);
  const auto* pairs = static_cast<const uint16_t*>(block.scales);
  float *scale = scratch, *least = scratch + stride;
  if (!group.RangesByChannel(keys)) {
    const uint32_t n_ranges = KvGroupsOf(dim, range);
    pairs += size_t{2} * slot * n_ranges;
    for (uint32_t t = 0; t < n; ++t, rows += stride, pairs += 2 * n_ranges) {
      LoadRanges(pairs, n_ranges, scale, least);
      for (uint32_t i = 0; i < dim; ++i) {
        rows[i] = least[i / range] + scale[i / range] * rows[i];
      }
    }
    return;
  }
  for (uint32_t t = 0; t < n; ++t, rows += stride) {
    const uint32_t at = slot + t;
    if (t == 0 || at % group.group_size == 0) {
      LoadRanges(pairs + size_t{2} * (at / group.group_size) * dim, dim, scale, least);
    }
    for (uint32_t i = 0; i < dim; ++i) rows[i] = least[i] + scale[i] * rows[i];
  }
}

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
    LoadRanges(static_cast<const uint16_t*>(block.scales) + size_t{2} * (slot / range) * dim, dim,
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
    Dequantise(*slots.group, false, block, slots.slot, slots.n, s.stride, scale, v);
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
      float* of = weights + size_t{q} * kDotTokens;
      const V least_sums = SumLeast<kFloatTokens>(of, least + g * kFloatTokens);
      ScaledWeights<kFloatTokens>(of, scale + g * kFloatTokens).Store(of + kFloatTokens);
      AddToAll(hn::ReduceSum(D(), least_sums), n_channels, sums + size_t{q} * s.stride + channel);
    }
    AddValueRows(weights + kFloatTokens, slots.n_queries, {v + channel, s.stride}, slots.n,
                 n_channels, s.stride, sums + channel);
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
