// Attention straight over the KV pages, with the softmax carried along from tile to tile (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018; Rabe and Staats, 2021). A tile
// is at most kTileTokens tokens of one page and one kv head; all queries that use it are served
// while it is in the first cache. A query's result depends on nothing but its own row, so it is the
// same however queries are grouped into tiles.
#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/distance_bias.h"
#include "kernels/kv_page.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/attention.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/cpu/simd/kv_rows-inl.h"
#include "kernels/cpu/simd/tanh-inl.h"

#ifndef ARN_KERNELS_CPU_SIMD_ATTENTION_ONCE
#define ARN_KERNELS_CPU_SIMD_ATTENTION_ONCE
namespace arn::cpu {

// The largest vector has 16 floats. Heads are padded to whole vectors with zeros.
inline constexpr uint32_t kMaxLanes = 16;
inline constexpr uint32_t kTileTokens = 32;
inline constexpr uint32_t kTileQueries = 32;

// The parts of a task's scratch, in floats.
struct AttentionScratch {
  float* k;       // [kTileTokens, stride]; unused when the page can be read in place
  float* v;       // [kTileTokens, stride]
  float* q;       // [queries, stride], times the scale
  float* sums;    // [queries, stride]: unnormalised output
  float* scores;  // [queries, kTileTokens]
  float* max;     // [queries]
  float* total;   // [queries, kMaxLanes]: one sum of weights per lane
  uint32_t stride;
};

inline AttentionScratch PlaceScratch(const AttentionKind& kind, std::byte* at, uint64_t* bytes) {
  const uint64_t queries = AttentionTileQueries(kind);
  AttentionScratch s;
  s.stride = static_cast<uint32_t>(AlignUp(kind.head_dim, kMaxLanes));
  uint64_t used = 0;
  auto take = [&](uint64_t floats) {
    float* p = at == nullptr ? nullptr : reinterpret_cast<float*>(at + used);
    used += AlignUp(floats * sizeof(float), kSliceAlign);
    return p;
  };
  s.k = take(uint64_t{kTileTokens} * s.stride);
  s.v = take(uint64_t{kTileTokens} * s.stride);
  s.q = take(queries * s.stride);
  s.sums = take(queries * s.stride);
  s.scores = take(queries * kTileTokens);
  s.max = take(queries);
  s.total = take(queries * kMaxLanes);
  if (bytes != nullptr) *bytes = used;
  return s;
}

}  // namespace arn::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(kLanes <= kMaxLanes && kTileTokens % kLanes == 0);

// Lane j of the result is the sum of all lanes of v[j].
template <size_t kCount>
HWY_INLINE V SumEach(V (&v)[kCount]) {
  const D d;
  if constexpr (kCount == 1) {
    return v[0];
  } else {
    V half[kCount / 2];
    for (size_t i = 0; i < kCount / 2; ++i) {
      half[i] = hn::Add(hn::ConcatEven(d, v[2 * i + 1], v[2 * i]),
                        hn::ConcatOdd(d, v[2 * i + 1], v[2 * i]));
    }
    return SumEach(half);
  }
}

// scores[t] = q . k[t] for t < n, rounded up to whole vectors of tokens.
HWY_INLINE void Dot(const float* q, const Rows& k, size_t n, size_t dim, float* scores) {
  const D d;
  for (size_t t = 0; t < n; t += kLanes) {
    V sums[kLanes];
    for (V& s : sums) s = hn::Zero(d);
    const float* row = k.data + t * k.stride;
    if (t + kLanes <= n) {
      for (size_t i = 0; i < dim; i += kLanes) {
        const V a = hn::LoadU(d, q + i);
        for (size_t j = 0; j < kLanes; ++j) {
          sums[j] = hn::MulAdd(a, hn::LoadU(d, row + j * k.stride + i), sums[j]);
        }
      }
    } else {
      for (size_t j = 0; t + j < n; ++j) {
        for (size_t i = 0; i < dim; i += kLanes) {
          sums[j] = hn::MulAdd(hn::LoadU(d, q + i), hn::LoadU(d, row + j * k.stride + i), sums[j]);
        }
      }
    }
    hn::StoreU(SumEach(sums), d, scores + t);
  }
}

// Turns the scores of tokens [begin, end) into weights, those outside into 0, and folds them into
// the running maximum and the totals [kMaxLanes]; totals and `sums` [stride] are brought to the new
// maximum.
void Softmax(float* scores, size_t begin, size_t end, float* max, float* totals, float* sums,
             size_t stride) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -HUGE_VALF);
  V s[kTileTokens / kLanes];
  V largest = lowest;
  const bool whole = begin == 0 && end == kTileTokens;
  for (size_t i = 0; i < kTileTokens / kLanes; ++i) {
    s[i] = hn::LoadU(d, scores + i * kLanes);
    if (!whole) {
      const auto index = hn::Iota(di, static_cast<int32_t>(i * kLanes));
      const auto visible = hn::And(hn::Ge(index, hn::Set(di, static_cast<int32_t>(begin))),
                                   hn::Lt(index, hn::Set(di, static_cast<int32_t>(end))));
      s[i] = hn::IfThenElse(hn::RebindMask(d, visible), s[i], lowest);
    }
    largest = hn::Max(largest, s[i]);
  }
  const float tile_max = hn::ReduceMax(d, largest);
  if (tile_max > *max) {
    const V correction = hn::Set(d, ExpF32(*max - tile_max));
    *max = tile_max;
    hn::StoreU(hn::Mul(hn::LoadU(d, totals), correction), d, totals);
    for (size_t i = 0; i < stride; i += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, sums + i), correction), d, sums + i);
    }
  }
  const V shift = hn::Set(d, *max);
  V total = hn::LoadU(d, totals);
  for (size_t i = 0; i < kTileTokens / kLanes; ++i) {
    const V p = VecExp(d, hn::Sub(s[i], shift));
    hn::StoreU(p, d, scores + i * kLanes);
    total = hn::Add(total, p);
  }
  hn::StoreU(total, d, totals);
}

// sums[q, i] += weights[q, t] v[t, i] for kQueries queries and kVectors vectors of i.
template <size_t kQueries, size_t kVectors>
HWY_INLINE void AddBlock(const float* weights, const Rows& v, size_t begin, size_t end,
                         size_t column, size_t stride, float* sums) {
  const D d;
  V acc[kQueries][kVectors];
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t c = 0; c < kVectors; ++c) {
      acc[q][c] = hn::LoadU(d, sums + q * stride + column + c * kLanes);
    }
  }
  for (size_t t = begin; t < end; ++t) {
    V values[kVectors];
    for (size_t c = 0; c < kVectors; ++c) {
      values[c] = hn::LoadU(d, v.data + t * v.stride + column + c * kLanes);
    }
    for (size_t q = 0; q < kQueries; ++q) {
      const V p = hn::Set(d, weights[q * kTileTokens + t]);
      for (size_t c = 0; c < kVectors; ++c) acc[q][c] = hn::MulAdd(p, values[c], acc[q][c]);
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t c = 0; c < kVectors; ++c) {
      hn::StoreU(acc[q][c], d, sums + q * stride + column + c * kLanes);
    }
  }
}

template <size_t kQueries>
void AddWeighted(const float* weights, const Rows& v, size_t begin, size_t end, size_t dim,
                 size_t stride, float* sums) {
  size_t i = 0;
  for (; i + 4 * kLanes <= dim; i += 4 * kLanes) {
    AddBlock<kQueries, 4>(weights, v, begin, end, i, stride, sums);
  }
  for (; i < dim; i += kLanes) {
    AddBlock<kQueries, 1>(weights, v, begin, end, i, stride, sums);
  }
}

class TileRunner {
 public:
  explicit TileRunner(const AttentionTile& tile)
      : tile_(tile),
        dim_(tile.kind->head_dim),
        sees_all_(tile.kind->sees_source || tile.k_rows != nullptr),
        s_(PlaceScratch(*tile.kind, tile.scratch, nullptr)),
        queries_(tile.n_rows * tile.n_heads) {}

  void Run() {
    LoadQueries();
    const uint32_t end = sees_all_ ? tile_.source_rows : tile_.first_position + tile_.n_rows;
    uint32_t position =
        sees_all_ ? 0 : FirstSeen(tile_.first_position, *tile_.kind, *tile_.group, *tile_.table);
    while (position < end) {
      uint32_t n = Min(kTileTokens, end - position);
      if (tile_.k_rows == nullptr) {
        const uint32_t page_tokens = tile_.group->page_tokens;
        n = Min(n, page_tokens - position % page_tokens);
      }
      RunTokens(position, n);
      position += n;
    }
    StoreOutput();
  }

 private:
  uint32_t RowOf(uint32_t query) const { return query / tile_.n_heads; }
  uint32_t HeadOf(uint32_t query) const { return tile_.first_head + query % tile_.n_heads; }
  const float* QueryAt(uint32_t query) const {
    return tile_.q + RowOf(query) * tile_.q_stride + size_t{HeadOf(query)} * dim_;
  }

  void LoadQueries() {
    const size_t dim = dim_, stride = s_.stride;
    for (uint32_t q = 0; q < queries_; ++q) {
      const float* from = QueryAt(q);
      float* to = s_.q + q * stride;
      for (size_t i = 0; i < dim; ++i) to[i] = from[i] * tile_.kind->scale;
      for (size_t i = dim; i < stride; ++i) to[i] = 0.0f;
      s_.max[q] = -HUGE_VALF;
    }
    std::memset(s_.sums, 0, queries_ * stride * sizeof(float));
    std::memset(s_.total, 0, size_t{queries_} * kMaxLanes * sizeof(float));
    if (tile_.sinks == nullptr) return;
    // As a token whose value is zero.
    for (uint32_t q = 0; q < queries_; ++q) {
      s_.max[q] = tile_.sinks[HeadOf(q)];
      s_.total[size_t{q} * kMaxLanes] = 1.0f;
    }
  }

  // Positions [position, position + n), which lie in one page.
  void RunTokens(uint32_t position, uint32_t n) {
    if (tile_.k_rows != nullptr) {
      const Rows k = RowsAt(tile_.k_rows, position, n, s_.k);
      AddTokens(position, n, k, nullptr, nullptr);
      return AddValues(RowsAt(tile_.v_rows, position, n, s_.v), n);
    }
    const KvGroup& group = *tile_.group;
    const uint32_t slot = position % group.page_tokens;
    const KvHeadPage page = KvPageAt(group, tile_.pools, KvPageOf(group, *tile_.table, position),
                                     tile_.group_layer, tile_.kv_head);
    const float* k_scales = ScalesOf(page.k);
    const float* v_scales = ScalesOf(page.v);
    const Rows k = LoadRows(group, true, page.k, slot, n, s_.k, s_.stride);
    AddTokens(position, n, k, k_scales == nullptr ? nullptr : k_scales + slot,
              v_scales == nullptr ? nullptr : v_scales + slot);
    AddValues(LoadRows(group, false, page.v, slot, n, s_.v, s_.stride), n);
  }

  // Rows of floats that are not in pages; where they are when they have whole vectors.
  Rows RowsAt(const float* rows, uint32_t first, uint32_t n, float* scratch) const {
    const float* from = rows + first * tile_.q_stride;
    if (dim_ % kLanes == 0) return {from, tile_.q_stride};
    for (uint32_t t = 0; t < n; ++t) {
      float* to = scratch + t * s_.stride;
      std::memcpy(to, from + t * tile_.q_stride, dim_ * sizeof(float));
      for (size_t i = dim_; i < s_.stride; ++i) to[i] = 0.0f;
    }
    return {scratch, s_.stride};
  }

  // Scores and softmax of some tokens; their scales, when there are any.
  void AddTokens(uint32_t position, uint32_t n, const Rows& k, const float* k_scales,
                 const float* v_scales) {
    const size_t stride = s_.stride, dim = AlignUp(dim_, kLanes);
    for (uint32_t q = 0; q < queries_; ++q) {
      float* scores = s_.scores + q * kTileTokens;
      // What this query sees of the tile.
      const uint32_t own = tile_.first_position + RowOf(q);
      const uint32_t first =
          sees_all_ ? 0 : FirstVisible(own, tile_.kind->window, tile_.kind->chunk);
      const uint32_t from = Max(first, position) - position;
      const uint32_t to = sees_all_ ? position + n : Min(own + 1, position + n);
      if (to <= position || from >= to - position) {
        std::memset(scores, 0, kTileTokens * sizeof(float));
        continue;
      }
      Dot(s_.q + q * stride, k, n, dim, scores);
      if (k_scales != nullptr) Scale(k_scales, n, scores);
      if (tile_.distance_bias != nullptr) AddDistanceBias(HeadOf(q), own, position, n, scores);
      if (tile_.kind->softcap != 0.0f) Cap(tile_.kind->softcap, scores);
      Softmax(scores, from, to - position, s_.max + q, s_.total + q * kMaxLanes,
              s_.sums + q * stride, stride);
      if (v_scales != nullptr) Scale(v_scales, n, scores);
    }
  }

  void AddDistanceBias(uint32_t head, uint32_t query, uint32_t position, uint32_t n,
                       float* scores) const {
    const DistanceBias bias = {tile_.distance_bias, tile_.n_distances, tile_.kind->n_heads,
                               tile_.k_rows != nullptr};
    for (uint32_t t = 0; t < n; ++t) scores[t] += bias.Of(query, position + t, head);
  }

  // All of a tile's scores: those of no token may become anything.
  static void Cap(float softcap, float* scores) {
    const D d;
    const V cap = hn::Set(d, softcap);
    for (size_t i = 0; i < kTileTokens; i += kLanes) {
      const V x = hn::Div(hn::LoadU(d, scores + i), cap);
      hn::StoreU(hn::Mul(cap, VecTanh(d, x)), d, scores + i);
    }
  }

  static void Scale(const float* factors, size_t n, float* x) {
    for (size_t i = 0; i < n; ++i) x[i] *= factors[i];
  }

  void AddValues(const Rows& v, uint32_t n) {
    const size_t stride = s_.stride, dim = AlignUp(dim_, kLanes);
    constexpr size_t kBlock = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64 ? 4 : 2;
    uint32_t q = 0;
    for (; q + kBlock <= queries_; q += kBlock) {
      AddWeighted<kBlock>(s_.scores + q * kTileTokens, v, 0, n, dim, stride, s_.sums + q * stride);
    }
    for (; q < queries_; ++q) {
      AddWeighted<1>(s_.scores + q * kTileTokens, v, 0, n, dim, stride, s_.sums + q * stride);
    }
  }

  void StoreOutput() {
    const D d;
    const size_t dim = dim_;
    for (uint32_t q = 0; q < queries_; ++q) {
      const float inverse = 1.0f / hn::ReduceSum(d, hn::LoadU(d, s_.total + q * kMaxLanes));
      const float* from = s_.sums + q * s_.stride;
      float* to = tile_.out + RowOf(q) * tile_.out_stride + size_t{HeadOf(q)} * dim;
      for (size_t i = 0; i < dim; ++i) to[i] = from[i] * inverse;
    }
  }

  const AttentionTile& tile_;
  const size_t dim_;
  const bool sees_all_;
  const AttentionScratch s_;
  const uint32_t queries_;
};

void Attention(const AttentionTile& tile) { TileRunner(tile).Run(); }

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Attention);
AttentionFn ChooseAttention() { return HWY_DYNAMIC_POINTER(Attention); }

uint32_t AttentionTileQueries(const AttentionKind& kind) {
  return Max(kTileQueries, kind.n_heads / kind.n_kv_heads);
}

uint64_t AttentionScratchBytes(const AttentionKind& kind) {
  uint64_t bytes = 0;
  PlaceScratch(kind, nullptr, &bytes);
  return bytes;
}

}  // namespace arn::cpu
#endif
