// Attention directly on the KV pages with online softmax over tiles (Rabe and Staats,
// "Self-attention Does Not Need O(n^2) Memory", 2021). A tile is a few tokens of one kv head; all
// queries of that head use it while it is in the L1 cache. int8 and quantised pages are multiplied
// as integers if the CPU has an Int8Dot; otherwise they are widened to floats, as f16 pages always
// are.
//
// Tiles and segments start at multiples of their size, and segments are merged in order. A query's
// result therefore depends only on its own row, not on the grouping of queries or on the threads.
#include <cmath>
#include <cstring>

#include "kernels/contract/kv_page.h"
#include "kernels/contract/relative_position_bias.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/attention.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/attention_float-inl.h"
#include "kernels/cpu/simd/attention_int8-inl.h"
#include "kernels/cpu/simd/attention_quantised-inl.h"
#include "kernels/cpu/simd/quantize_queries-inl.h"
#include "kernels/cpu/simd/softmax-inl.h"
#include "kernels/cpu/simd/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Initialises a record. A sink adds to the softmax denominator and has no value.
void StartRecord(const AttentionTile& tile, uint32_t head, float* record) {
  std::memset(record, 0, PartialFloats(tile.kind->head_dim) * sizeof(float));
  const AttentionPartial start = PartialAt(record);
  *start.max = tile.sinks == nullptr ? -HUGE_VALF : tile.sinks[head];
  *start.total = tile.sinks == nullptr ? 0.0f : 1.0f;
}

void StoreResult(const AttentionTile& tile, uint32_t query, const AttentionPartial& from) {
  const uint32_t dim = tile.kind->head_dim;
  const uint32_t row = query / tile.n_heads, head = tile.first_head + query % tile.n_heads;
  const float inverse = 1.0f / *from.total;
  ScaleRow(from.sums, inverse, dim, tile.out + row * tile.out_stride + size_t{head} * dim);
}

class TileRunner {
 public:
  explicit TileRunner(const AttentionTile& tile)
      : tile_(tile),
        kind_(*tile.kind),
        dim_(tile.kind->head_dim),
        sees_all_(SeesAll(tile)),
        first_(AttentionFirst(tile)),
        end_(AttentionEnd(tile)),
        record_floats_(PartialFloats(tile.kind->head_dim)),
        s_(PlaceScratch(*tile.kind, tile.scratch, nullptr)),
        queries_(tile.n_rows * tile.n_heads),
        takes_rows_(tile.dot != nullptr && tile.dot->score_rows != nullptr &&
                    queries_ <= kDotRowQueries && dim_ <= kDotRowDim),
        pages_(tile) {}

  void Run() {
    LoadQueries();
    if (tile_.partials != nullptr) {
      RunSegment(tile_.segment);
      for (uint32_t q = 0; q < queries_; ++q) {
        float* record = tile_.partials + size_t{q} * record_floats_;
        std::memset(record, 0, kMaxLanes * sizeof(float));
        const AttentionPartial to = PartialAt(record), from = Gathered(q);
        *to.max = *from.max;
        *to.total = *from.total;
        std::memcpy(to.sums, from.sums, s_.stride * sizeof(float));
      }
      return;
    }
    const uint32_t segment = first_ / kAttentionSegment, last = (end_ - 1) / kAttentionSegment;
    if (segment == last && tile_.sinks == nullptr) {
      // Merged into an empty record, results would be the same.
      RunSegment(segment);
      for (uint32_t q = 0; q < queries_; ++q) StoreResult(tile_, q, Gathered(q));
      return;
    }
    for (uint32_t q = 0; q < queries_; ++q) StartRecord(tile_, HeadOf(q), Merged(q));
    for (uint32_t i = segment; i <= last; ++i) {
      RunSegment(i);
      for (uint32_t q = 0; q < queries_; ++q) {
        MergePartial(Gathered(q), s_.stride, PartialAt(Merged(q)));
      }
    }
    for (uint32_t q = 0; q < queries_; ++q) StoreResult(tile_, q, PartialAt(Merged(q)));
  }

 private:
  uint32_t RowOf(uint32_t query) const { return query / tile_.n_heads; }
  uint32_t HeadOf(uint32_t query) const { return tile_.first_head + query % tile_.n_heads; }
  float* Merged(uint32_t query) const { return s_.merged + size_t{query} * record_floats_; }
  // Returns a query's result over the current segment, with the total summed over lanes.
  AttentionPartial Gathered(uint32_t query) const {
    const D d;
    float* lanes = s_.total + size_t{query} * kMaxLanes;
    lanes[0] = hn::ReduceSum(d, hn::LoadU(d, lanes));
    return {s_.max + query, lanes, s_.sums + size_t{query} * s_.stride};
  }

  void LoadQueries() {
    const size_t stride = s_.stride;
    for (uint32_t q = 0; q < queries_; ++q) {
      const float* from = tile_.q + RowOf(q) * tile_.q_stride + size_t{HeadOf(q)} * dim_;
      float* to = s_.q + q * stride;
      ScaleRow(from, kind_.attention_scale, dim_, to);
      for (size_t i = dim_; i < stride; ++i) to[i] = 0.0f;
    }
    if (tile_.dot == nullptr) return;
    for (uint32_t q = 0; q < queries_; q += 4) {
      const size_t at = size_t{q} * s_.quads;
      QuantizeQueries(s_.q + q * stride, stride, Min(queries_ - q, 4u), s_.q_high + at,
                      s_.q_low + at, s_.q_high_sums + q, s_.q_low_sums + q, s_.q_factors + q);
    }
    if (takes_rows_ && tile_.dot->spread_queries != nullptr) {
      tile_.dot->spread_queries(Queries({0, queries_}), kind_.head_dim);
    }
  }

  // Range of queries in the task.
  struct Range {
    uint32_t begin, end;
  };
  DotQueries Queries(Range range) const {
    const size_t first = range.begin;
    return {s_.q_high + first * s_.quads,
            s_.q_low + first * s_.quads,
            s_.q_high_sums + first,
            s_.q_low_sums + first,
            s_.quads,
            range.end - range.begin,
            s_.spread + first * DotSpreadBytes(kind_.head_dim)};
  }

  void RunSegment(uint32_t segment) {
    for (uint32_t q = 0; q < queries_; ++q) s_.max[q] = -HUGE_VALF;
    std::memset(s_.sums, 0, queries_ * size_t{s_.stride} * sizeof(float));
    std::memset(s_.total, 0, size_t{queries_} * kMaxLanes * sizeof(float));
    uint32_t position = Max(first_, segment * kAttentionSegment);
    const uint32_t end = Min(end_, (segment + 1) * kAttentionSegment);
    Int8Rows rows[2];
    uint32_t current = 0;
    pages_.Find(position, end, &rows[current]);
    while (position < end) {
      const uint32_t n = rows[current].n;
      if (n == 0) {
        position = Max(position, FirstHeld());
        position += RunFloats(position, end);
        pages_.Find(position, end, &rows[current]);
        continue;
      }
      // The prefetched tile may be the first of the next segment, which the same thread usually
      // takes.
      pages_.Find(position + n, end_, &rows[1 - current]);
      if (rows[current].quantised) {
        RunQuantised(position, rows[current], rows[1 - current]);
      } else {
        RunInt8(position, rows[current], rows[1 - current]);
      }
      current = 1 - current;
      position += n;
    }
  }

  // Returns the first position whose page is there.
  uint32_t FirstHeld() const {
    return tile_.k_rows != nullptr ? 0 : tile_.table->first_page * tile_.group->page_tokens;
  }

  // Processes a float tile that starts at `position`. Returns its number of tokens.
  uint32_t RunFloats(uint32_t position, uint32_t end) {
    const size_t dim = AlignUp(dim_, kLanes);
    uint32_t n = Min(kFloatTokens - position % kFloatTokens, end - position);
    Rows k, v;
    const float *k_scales = nullptr, *v_scales = nullptr;
    KvHeadPage page;
    uint32_t slot = 0;
    if (tile_.k_rows != nullptr) {
      k = RowsAt(tile_.k_rows, position, n, s_.k);
    } else {
      const KvGroup& group = *tile_.group;
      slot = position % group.page_tokens;
      n = Min(n, group.page_tokens - slot);
      page = KvPageAt(group, tile_.pools, KvPageOf(group, *tile_.table, position),
                      tile_.group_layer, tile_.kv_head);
      k = LoadRows(group, page.k, slot, n, s_.k, s_.stride);
      k_scales = ScalesOf(page.k);
      v_scales = ScalesOf(page.v);
    }
    const Range seen = SeenBy(position, n);
    const QuantisedSlots slots = {tile_.group, s_, slot, n, seen.begin, seen.end - seen.begin};
    const bool has_codes = page.k.bits != 0 && !tile_.group->k_by_token;
    if (has_codes) {
      ScoreSlots(slots, page.k, k);
    } else if (page.k.bits != 0) {
      // Until the values are loaded, s_.v is free.
      Dequantise(*tile_.group, true, page.k, slot, n, s_.stride, s_.v, s_.k);
    }
    for (uint32_t q = seen.begin; q < seen.end; ++q) {
      float* scores = s_.scores + size_t{q} * kDotTokens;
      if (!has_codes) Dot(s_.q + size_t{q} * s_.stride, k, n, dim, scores);
      if (k_scales != nullptr) Scale(k_scales + slot, n, scores);
      TileScores<kFloatTokens> tile;
      tile.Load(scores);
      Weigh(q, position, n, scores, &tile);
      tile.Store(scores);
      if (v_scales != nullptr) Scale(v_scales + slot, n, scores);
    }
    v = tile_.k_rows != nullptr ? RowsAt(tile_.v_rows, position, n, s_.v)
                                : LoadRows(*tile_.group, page.v, slot, n, s_.v, s_.stride);
    if (page.v.bits != 0 && !tile_.group->v_by_channel) {
      AddSlots(slots, page.v, s_.v);
      return n;
    }
    if (page.v.bits != 0) {
      Dequantise(*tile_.group, false, page.v, slot, n, s_.stride, s_.k, s_.v);
    }
    AddValueRows(s_.scores + size_t{seen.begin} * kDotTokens, seen.end - seen.begin, v, n, dim,
                 s_.stride, s_.sums + size_t{seen.begin} * s_.stride);
    return n;
  }

  void RunInt8(uint32_t position, const Int8Rows& rows, const Int8Rows& next) {
    const Int8Dot& dot = *tile_.dot;
    const D d;
    const uint32_t dim = kind_.head_dim;
    const Range seen = SeenBy(position, rows.n);
    const uint32_t n_seen = seen.end - seen.begin;
    if (n_seen == 0) return;
    float k_scales[kDotTokens], v_scales[kDotTokens];
    LoadScales(rows.k_scales, rows.n, k_scales);
    LoadScales(rows.v_scales, rows.n, v_scales);
    const size_t first = seen.begin;
    const DotQueries queries = Queries(seen);
    for (uint32_t t = 0; t < rows.n; t += kDotBlock) {
      PrefetchBlock(next, t);
      if (takes_rows_) {
        dot.score_rows(queries, rows.k + t / kKvStrip, 1, dim, s_.scores + first * kDotTokens + t);
      } else {
        dot.pack_keys(rows.k + t / kKvStrip, 1, dim,
                      s_.keys + t / kDotBlock * dot.KeyBlockBytes(dim));
      }
    }
    if (!takes_rows_) {
      dot.scores(queries, s_.keys, static_cast<uint32_t>(CeilDiv(rows.n, kDotBlock)), dim,
                 s_.scores + first * kDotTokens);
    }
    for (uint32_t q = seen.begin; q < seen.end; ++q) {
      float* scores = s_.scores + size_t{q} * kDotTokens;
      const V factor = hn::Set(d, s_.q_factors[q]);
      TileScores<kDotTokens> tile;
      for (size_t i = 0; i < tile.kVectors; ++i) {
        const V scale = hn::Mul(factor, hn::LoadU(d, k_scales + i * kLanes));
        tile.v[i] = hn::Mul(hn::LoadU(d, scores + i * kLanes), scale);
      }
      Weigh(q, position, rows.n, scores, &tile);
      for (size_t i = 0; i < tile.kVectors; ++i) {
        tile.v[i] = hn::Mul(tile.v[i], hn::LoadU(d, v_scales + i * kLanes));
      }
      tile.Store(scores);
    }
    for (uint32_t q = seen.begin; q < seen.end; q += 4) {
      const size_t at = size_t{q} * kDotTokens;
      const auto load = [&](uint32_t j) HWY_ATTR {
        TileScores<kDotTokens> tile;
        tile.Load(s_.scores + at + size_t{j} * kDotTokens);
        return tile;
      };
      QuantizeWeightRows(dot, Min(seen.end - q, 4u), load, s_.w_high + at, s_.w_low + at, nullptr,
                         s_.w_factors + q);
    }
    const DotWeights weights = {s_.w_high + first * kDotTokens, s_.w_low + first * kDotTokens,
                                s_.w_factors + first, n_seen};
    float* sums = s_.sums + first * s_.stride;
    const uint32_t n_quads = DotQuads(rows.n);
    if (takes_rows_) return dot.add_value_rows(weights, rows.v, n_quads, dim, s_.stride, sums);
    dot.pack_values(rows.v, n_quads, dim, s_.values);
    dot.add_values(weights, s_.values, n_quads, DotValueWidth(dim), dim, s_.stride, sums);
  }

  void RunQuantised(uint32_t position, const Int8Rows& rows, const Int8Rows& next) {
    const Range seen = SeenBy(position, rows.n);
    if (seen.begin == seen.end) return;
    const QuantisedTile quantised = {*tile_.dot, *tile_.group,          s_,         rows, position,
                                     seen.begin, seen.end - seen.begin, takes_rows_};
    ScoreQuantised(quantised, next);
    for (uint32_t q = seen.begin; q < seen.end; ++q) {
      float* scores = s_.scores + size_t{q} * kDotTokens;
      TileScores<kDotTokens> tile;
      LoadScores(quantised, q, &tile);
      Weigh(q, position, rows.n, scores, &tile);
      tile.Store(scores);
    }
    AddQuantisedValues(quantised);
  }

  // Returns the queries that see any of the positions [position, position + n): rows not before all
  // of them, whose window has not passed them.
  Range SeenBy(uint32_t position, uint32_t n) const {
    if (sees_all_) return {0, queries_};
    if (tile_.k_rows != nullptr) return SeenByRows(position, n);
    uint32_t begin = position <= tile_.first_position ? 0 : position - tile_.first_position;
    if (tile_.visible.cells != nullptr) begin = 0;
    uint32_t end = tile_.n_rows;
    while (end > begin && FirstVisible(tile_.first_position + end - 1, kind_.window, kind_.chunk) >=
                              position + n) {
      --end;
    }
    begin = Min(begin, end);
    return {begin * tile_.n_heads, end * tile_.n_heads};
  }

  // The same if keys and values are rows.
  Range SeenByRows(uint32_t position, uint32_t n) const {
    uint32_t begin = 0, end = tile_.n_rows;
    const auto seen = [&](uint32_t row) {
      return RowsSeen(kind_, tile_.first_position + row, tile_.encoder_rows);
    };
    while (begin < end && seen(begin).end <= position) ++begin;
    while (end > begin && seen(end - 1).first >= position + n) --end;
    return {begin * tile_.n_heads, end * tile_.n_heads};
  }

  // Returns one past the last position that a query at `own` may see.
  uint32_t EndOf(uint32_t own) const {
    return tile_.visible.cells != nullptr ? tile_.visible.end : own + 1;
  }
  // True if positions before `end` may be hidden from a query.
  bool HasHidden(uint32_t end) const {
    return tile_.visible.cells != nullptr && end > tile_.visible.first;
  }
  // Hides what a row does not attend to. Returns false, and makes the scores weights of 0, if
  // nothing is left.
  template <size_t kTokens>
  bool HideCells(uint32_t row, uint32_t position, uint32_t n, float* memory,
                 TileScores<kTokens>* scores) const {
    scores->Store(memory);
    for (uint32_t t = 0; t < n; ++t) {
      if (!tile_.visible.Has(row, position + t)) memory[t] = -HUGE_VALF;
    }
    scores->Load(memory);
    if (scores->Largest() != -HUGE_VALF) return true;
    for (V& s : scores->v) s = hn::Zero(D());
    return false;
  }

  // Turns the scores of [position, position + n) into weights. Without hidden cells the query sees
  // at least one of them.
  // `memory`: buffer for the tile's scores.
  template <size_t kTokens>
  HWY_INLINE void Weigh(uint32_t q, uint32_t position, uint32_t n, float* memory,
                        TileScores<kTokens>* scores) {
    const uint32_t own = tile_.first_position + RowOf(q);
    const SeenRows seen = sees_all_ ? SeenRows{0, position + n}
                          : tile_.k_rows != nullptr
                              ? RowsSeen(kind_, own, tile_.encoder_rows)
                              : SeenRows{FirstVisible(own, kind_.window, kind_.chunk), EndOf(own)};
    const uint32_t from = Max(seen.first, position) - position;
    const uint32_t to = Min(seen.end, position + n) - position;
    if (tile_.relative_position_bias != nullptr) {
      scores->Store(memory);
      AddRelativePositionBias(HeadOf(q), own, position, n, memory);
      scores->Load(memory);
    }
    if (kind_.softcap != 0.0f) Cap(kind_.softcap, scores);
    scores->Hide(from, to);
    if (HasHidden(position + n) && !HideCells(RowOf(q), position, n, memory, scores)) return;
    Softmax(scores, s_.max + q, s_.total + size_t{q} * kMaxLanes, s_.sums + size_t{q} * s_.stride,
            s_.stride);
  }

  // Returns float rows that are not in pages; in place if they are whole vectors.
  Rows RowsAt(const float* rows, uint32_t first, uint32_t n, float* scratch) const {
    const float* from = rows + first * tile_.q_stride;
    if (dim_ % kLanes == 0) return {from, tile_.q_stride};
    for (uint32_t t = 0; t < n; ++t) {
      float* to = scratch + size_t{t} * s_.stride;
      std::memcpy(to, from + t * tile_.q_stride, dim_ * sizeof(float));
      for (size_t i = dim_; i < s_.stride; ++i) to[i] = 0.0f;
    }
    return {scratch, s_.stride};
  }

  void AddRelativePositionBias(uint32_t head, uint32_t query, uint32_t position, uint32_t n,
                               float* scores) const {
    const RelativePositionBias bias = {tile_.relative_position_bias, tile_.n_relative_positions,
                                       kind_.n_heads, tile_.k_rows != nullptr};
    for (uint32_t t = 0; t < n; ++t) scores[t] += bias.Of(query, position + t, head);
  }

  // Caps all of a tile's scores; those past the last token are masked later.
  template <size_t kTokens>
  static void Cap(float softcap, TileScores<kTokens>* scores) {
    const D d;
    const V cap = hn::Set(d, softcap);
    for (V& s : scores->v) s = hn::Mul(cap, VecTanh(d, hn::Div(s, cap)));
  }

  static void Scale(const float* factors, size_t n, float* x) {
    for (size_t i = 0; i < n; ++i) x[i] *= factors[i];
  }

  const AttentionTile& tile_;
  const AttentionKind& kind_;
  const size_t dim_;
  const bool sees_all_;
  const uint32_t first_, end_;
  const uint32_t record_floats_;
  const AttentionScratch s_;
  const uint32_t queries_;
  const bool takes_rows_;  // True: multiplies rows in place, without packing.
  const Int8Pages pages_;
};

void Attention(const AttentionTile& tile) { TileRunner(tile).Run(); }

void MergeAttention(const AttentionTile& tile, uint32_t n_segments) {
  const uint32_t floats = PartialFloats(tile.kind->head_dim);
  const uint32_t queries = tile.n_rows * tile.n_heads;
  float* record = PlaceScratch(*tile.kind, tile.scratch, nullptr).merged;
  for (uint32_t q = 0; q < queries; ++q) {
    StartRecord(tile, tile.first_head + q % tile.n_heads, record);
    for (uint32_t i = 0; i < n_segments; ++i) {
      const size_t at = (size_t{i} * queries + q) * floats;
      MergePartial(PartialAt(tile.partials + at), AttentionStride(tile.kind->head_dim),
                   PartialAt(record));
    }
    StoreResult(tile, q, PartialAt(record));
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Attention);
HWY_EXPORT(MergeAttention);
AttentionFn ChooseAttention() { return HWY_DYNAMIC_POINTER(Attention); }
MergeAttentionFn ChooseMergeAttention() { return HWY_DYNAMIC_POINTER(MergeAttention); }

uint32_t AttentionTileQueries(const AttentionKind& kind) {
  return Max(kTileQueries, kind.n_heads / kind.n_kv_heads);
}

uint64_t AttentionScratchBytes(const AttentionKind& kind) {
  uint64_t bytes = 0;
  PlaceScratch(kind, nullptr, &bytes);
  return bytes;
}

uint64_t AttentionPartialFloats(const AttentionKind& kind) { return PartialFloats(kind.head_dim); }

bool SeesAll(const AttentionTile& tile) {
  const bool has_mask = tile.kind->is_causal || tile.kind->window != 0;
  return tile.kind->is_cross_attention || (tile.k_rows != nullptr && !has_mask);
}

uint32_t AttentionFirst(const AttentionTile& tile) {
  if (SeesAll(tile)) return 0;
  if (tile.k_rows != nullptr) {
    const uint32_t first = RowsSeen(*tile.kind, tile.first_position, tile.encoder_rows).first;
    return first - first % kDotTokens;
  }
  const uint32_t seen = FirstSeen(tile.first_position, *tile.kind, *tile.group, *tile.table);
  return seen - seen % kDotTokens;
}

uint32_t AttentionEnd(const AttentionTile& tile) {
  if (SeesAll(tile)) return tile.encoder_rows;
  if (tile.visible.cells != nullptr) return tile.visible.end;
  if (tile.k_rows == nullptr) return tile.first_position + tile.n_rows;
  return RowsSeen(*tile.kind, tile.first_position + tile.n_rows - 1, tile.encoder_rows).end;
}

}  // namespace arn::cpu
#endif
