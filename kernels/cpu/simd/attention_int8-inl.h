// Attention tiles with integer keys and values, multiplied by Int8Dot.
#if defined(ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_
#undef ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/contract/kv_page.h"
#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/kv_rows-inl.h"
#include "kernels/cpu/simd/reduce_four-inl.h"
#include "kernels/cpu/simd/softmax-inl.h"
#include "kernels/math/round.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Addresses of the rows of a tile, by strip (DotRow); the strips may be in several pages of one
// type. The scales of a strip's tokens are contiguous. Quantised pages have ranges instead, which
// the tokens of a strip may share. The last strip is repeated to fill a block.
struct Int8Rows {
  static constexpr uint32_t kStrips = kDotTokens / kKvStrip;
  uint32_t n = 0;  // tokens
  bool quantised = false;
  uint32_t k_row_bytes = 0, v_row_bytes = 0;
  const int8_t* k[kStrips];
  const int8_t* v[kStrips];
  const void* k_scales[kStrips];
  const void* v_scales[kStrips];
};

// Prefetches into L2, which has more outstanding misses than L1. Inlined, because GCC drops the
// call of a function without other side effects.
HWY_INLINE void PrefetchBytes(const void* from, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  for (size_t i = 0; i < bytes; i += kLineBytes) {
    __builtin_prefetch(static_cast<const std::byte*>(from) + i, 0, 2);
  }
}

// Prefetches the rows of a block one tile ahead.
HWY_INLINE void PrefetchBlock(const Int8Rows& rows, uint32_t first) {
  const uint32_t end = Min(rows.n, first + kDotBlock);
  for (uint32_t t = first; t < end; t += kKvStrip) {
    const size_t n = Min(end - t, kKvStrip);
    PrefetchBytes(rows.k[t / kKvStrip], n * rows.k_row_bytes);
    PrefetchBytes(rows.v[t / kKvStrip], n * rows.v_row_bytes);
  }
}

// Pages that a task can read as integers.
class Int8Pages {
 public:
  explicit Int8Pages(const AttentionTile& tile) {
    // Requires pages of whole strips; otherwise Find() never returns a tile.
    if (tile.dot == nullptr || tile.group->page_tokens % kKvStrip != 0) return;
    group_ = tile.group;
    table_ = tile.table;
    Place(tile, 0);
    const KvGroup& group = *group_;
    if (group.quantised.n_pages != 0 && group.HasDefaultRanges() &&
        Splits(*tile.dot, group, group.quantised_k_bits) &&
        Splits(*tile.dot, group, group.quantised_v_bits)) {
      Place(tile, kQuantisedPage);
    }
  }

  // Finds the tile that starts at `position`. It stops at a tile boundary, at `end`, or where the
  // page type changes. It has no tokens if the page at `position` is not readable as integers.
  // Tokens before the table's first page, which no query sees, repeat the first strip there is, so
  // that the others keep their places in the tile, and their sums the order, whatever was dropped.
  HWY_INLINE void Find(uint32_t position, uint32_t end, Int8Rows* out) const {
    out->n = 0;
    if (group_ == nullptr || position >= end) return;
    const uint32_t page_tokens = group_->page_tokens;
    const uint32_t held = Max(position, table_->first_page * page_tokens);
    const uint32_t* page = table_->pages + (held / page_tokens - table_->first_page);
    const uint32_t kind = *page & kQuantisedPage;
    const Pages& pages = pages_[KindOfPage(*page)];
    if (pages.page_stride == 0) return;
    out->quantised = kind != 0;
    out->k_row_bytes = pages.k.row_bytes;
    out->v_row_bytes = pages.v.row_bytes;
    const uint32_t n_dropped = (held - position) / kKvStrip;
    uint32_t slot = held % page_tokens, strip = n_dropped;
    end = Min(end, position - position % kDotTokens + kDotTokens);
    for (uint32_t at = held; at < end && (*page & kQuantisedPage) == kind; ++page, slot = 0) {
      const uint32_t n = Min(end - at, page_tokens - slot);
      const uint64_t bytes = (*page & ~kQuantisedPage) * pages.page_stride;
      // Rows too, whose rest comes later: the translations of a page's addresses are awaited at
      // once.
      PrefetchBytes(pages.k.Row(bytes, slot), 1);
      PrefetchBytes(pages.v.Row(bytes, slot), 1);
      pages.k.PrefetchScales(bytes, slot, n);
      pages.v.PrefetchScales(bytes, slot, n);
      for (uint32_t t = slot; t < slot + n; t += kKvStrip, ++strip) {
        out->k[strip] = pages.k.Row(bytes, t);
        out->v[strip] = pages.v.Row(bytes, t);
        out->k_scales[strip] = pages.k.Scales(bytes, t);
        out->v_scales[strip] = pages.v.Scales(bytes, t);
      }
      at += n;
      out->n = at - position;
    }
    for (; strip % (kDotBlock / kKvStrip) != 0; ++strip) {
      out->k[strip] = out->k[strip - 1];
      out->v[strip] = out->v[strip - 1];
    }
    for (uint32_t i = 0; i < n_dropped; ++i) {
      out->k[i] = out->k[n_dropped];
      out->v[i] = out->v[n_dropped];
      out->k_scales[i] = out->k_scales[n_dropped];
      out->v_scales[i] = out->v_scales[n_dropped];
    }
  }

 private:
  // Keys or values of the kv head in the first page of a pool.
  struct Block {
    const std::byte* values;
    const std::byte* scales;
    uint32_t row_bytes;
    // log2 of the tokens that share scales, and the size of these scales.
    uint32_t shift, scale_bytes;

    const int8_t* Row(uint64_t page, uint32_t slot) const {
      return reinterpret_cast<const int8_t*>(values + page) + size_t{slot} * row_bytes;
    }
    const void* Scales(uint64_t page, uint32_t slot) const {
      return scales + page + size_t{slot >> shift} * scale_bytes;
    }
    HWY_INLINE void PrefetchScales(uint64_t page, uint32_t slot, uint32_t n) const {
      PrefetchBytes(Scales(page, slot), (((n - 1) >> shift) + 1) * size_t{scale_bytes});
    }
  };
  struct Pages {
    Block k, v;
    uint64_t page_stride = 0;  // 0: these pages are read as floats
  };

  // True if packed values of `bits` can be unpacked in place: rows are whole units, a unit of
  // tokens is whole vectors of 16 bytes, and no block overlaps two ranges.
  static bool Splits(const Int8Dot& dot, const KvGroup& group, uint32_t bits) {
    const uint32_t row_unit = Max(dot.unit, kDotBlock / dot.unit);
    return bits == 0 ||
           (group.group_size % kDotBlock == 0 && group.head_dim % (row_unit * 8 / bits) == 0);
  }

  void Place(const AttentionTile& tile, uint32_t kind) {
    const KvGroup& group = *group_;
    const KvHeadPage first = KvPageAt(group, tile.pools, kind, tile.group_layer, tile.kv_head);
    const auto place = [&](const KvHeadBlock& from, bool keys) {
      Block to = {from.values, static_cast<const std::byte*>(from.scales), group.head_dim, 0,
                  sizeof(float)};
      if (from.bits == 0) return to;
      to.row_bytes = KvRowBytes(group.head_dim, from.bits);
      const uint32_t pairs = keys ? group.head_dim : KvGroupsOf(group.head_dim, group.group_size);
      to.scale_bytes = static_cast<uint32_t>(pairs * 2 * sizeof(uint16_t));
      while (keys && 1u << to.shift < group.group_size) ++to.shift;
      return to;
    };
    pages_[KindOfPage(kind)] = {place(first.k, true), place(first.v, false),
                                group.pages(KindOfPage(kind)).page_stride};
  }

  const KvGroup* group_ = nullptr;
  const PageTable* table_ = nullptr;
  Pages pages_[kPageKinds];
};

// Loads the scales of a tile's n int8 tokens, zero-padded.
inline void LoadScales(const void* const* strips, uint32_t n, float* out) {
  // Copies whole strips: a copy of constant size is one or two instructions.
  for (uint32_t t = 0; t < n; t += kKvStrip) {
    std::memcpy(out + t, strips[t / kKvStrip], kKvStrip * sizeof(float));
  }
  for (uint32_t t = n; t < kDotTokens; ++t) out[t] = 0.0f;
}

// Scales of the integers that stand for the weights of four rows, by each row's largest, and their
// inverses.
struct WeightScales {
  alignas(16) float factors[4], inverse[4];

  template <class V4>
  HWY_INLINE WeightScales(float weight_max, V4 max) {
    const hn::DFromV<V4> d4;
    const auto most = hn::Set(d4, weight_max);
    const auto is_some = hn::Gt(max, hn::Set(d4, weight_max / 1e38f));
    hn::Store(hn::IfThenElseZero(is_some, hn::Div(max, most)), d4, factors);
    hn::Store(hn::IfThenElseZero(is_some, hn::Div(most, max)), d4, inverse);
  }
};

// Quantises the weights times the scales of their values to 16 bits in two planes.
HWY_INLINE void QuantizeWeights(const Int8Dot& dot, const TileScores<kDotTokens>& weights,
                                float inverse, uint8_t* high, uint8_t* low) {
  const D d;
  const hn::Repartition<uint16_t, D> d16;
  const hn::Repartition<uint8_t, D> d8;
  const V by = hn::Set(d, inverse), round = hn::Set(d, kRoundToInteger);
  const auto nearest = [&](V w) HWY_ATTR { return hn::BitCast(d16, hn::MulAdd(w, by, round)); };
  const auto rounding = hn::Set(d16, dot.weights_signed ? 128 : 0);
  // Four vectors at a time: two of each 4 bytes are kept, and each plane takes one of them.
  for (size_t i = 0; i < kDotTokens / kLanes; i += 4, high += 4 * kLanes, low += 4 * kLanes) {
    const V* w = weights.v + i;
    const auto a = hn::ConcatEven(d16, nearest(w[1]), nearest(w[0]));
    const auto b = hn::ConcatEven(d16, nearest(w[3]), nearest(w[2]));
    const auto upper_a = hn::BitCast(d8, hn::Add(a, rounding));
    const auto upper_b = hn::BitCast(d8, hn::Add(b, rounding));
    hn::StoreU(hn::ConcatOdd(d8, upper_b, upper_a), d8, high);
    // The low byte is the same, signed or unsigned.
    hn::StoreU(hn::ConcatEven(d8, hn::BitCast(d8, b), hn::BitCast(d8, a)), d8, low);
  }
}

// The same, as words; weight_max is at most 32767.
HWY_INLINE void QuantizeWeights(const TileScores<kDotTokens>& weights, float inverse,
                                int16_t* words) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Repartition<int16_t, D> d16;
  const V by = hn::Set(d, inverse), round = hn::Set(d, kRoundToInteger);
  const auto zero = hn::BitCast(di, round);
  const auto nearest = [&](V w) HWY_ATTR {
    return hn::Sub(hn::BitCast(di, hn::MulAdd(w, by, round)), zero);
  };
  for (size_t i = 0; i < kDotTokens / kLanes; i += 2, words += 2 * kLanes) {
    hn::StoreU(hn::OrderedDemote2To(d16, nearest(weights.v[i]), nearest(weights.v[i + 1])), d16,
               words);
  }
}

// Quantises n <= 4 rows of weights, kDotTokens apart, to words, or if they are null to planes.
// load(j): row j as a TileScores. factors[n]: weight = factor * integer.
template <class Load>
HWY_INLINE void QuantizeWeightRows(const Int8Dot& dot, uint32_t n, const Load& load, uint8_t* high,
                                   uint8_t* low, int16_t* words, float* factors) {
  V largest[4];
  for (uint32_t j = 0; j < 4; ++j) {
    largest[j] = j < n ? load(j).LargestByLane() : hn::Zero(D());
  }
  const WeightScales scales(
      static_cast<float>(dot.weight_max),
      ReduceFour(largest, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); }));
  for (uint32_t j = 0; j < n; ++j) {
    const size_t at = size_t{j} * kDotTokens;
    factors[j] = scales.factors[j];
    if (HWY_ARCH_X86 && words != nullptr) {
      QuantizeWeights(load(j), scales.inverse[j], words + at);
    } else {
      QuantizeWeights(dot, load(j), scales.inverse[j], high + at, low + at);
    }
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
