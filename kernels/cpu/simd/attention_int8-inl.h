// Tiles of int8 keys and values whose products are computed by Int8Dot.
#if defined(ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_
#undef ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_ATTENTION_INT8_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/kv_rows-inl.h"
#include "kernels/cpu/simd/softmax-inl.h"
#include "kernels/kv_page.h"
#include "kernels/round.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where the rows of a tile lie, which may be in several pages.
struct Int8Rows {
  // Tokens of one page.
  struct Part {
    const float* k_scales;
    const float* v_scales;
    uint32_t n;
  };
  uint32_t n = 0;
  uint32_t n_parts = 0;
  Part parts[kDotTokens];
  // [n], and the last once more for each token that a block lacks.
  const int8_t* k[kDotTokens];
  const int8_t* v[kDotTokens];
};

// Into the second cache, which can wait for more lines at once than the first. Inlined, or GCC
// drops the call of a function that has no other effect.
HWY_INLINE void PrefetchBytes(const void* from, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  for (size_t i = 0; i < bytes; i += kLineBytes) {
    __builtin_prefetch(static_cast<const std::byte*>(from) + i, 0, 2);
  }
}

// Asks for n rows, which follow one another where they are in one page.
HWY_INLINE void PrefetchRows(const int8_t* const* rows, uint32_t n, size_t dim) {
  if (rows[n - 1] == rows[0] + (n - 1) * dim) return PrefetchBytes(rows[0], n * dim);
  for (uint32_t t = 0; t < n; ++t) PrefetchBytes(rows[t], dim);
}

// Asks for a block's rows, which are to be there when the tile before has been worked on.
HWY_INLINE void PrefetchBlock(const Int8Rows& rows, uint32_t first, size_t dim) {
  if (first >= rows.n) return;
  const uint32_t n = Min(rows.n - first, kDotBlock);
  PrefetchRows(rows.k + first, n, dim);
  PrefetchRows(rows.v + first, n, dim);
}

// Positions [position, position + n) of at most kDotTokens, all in open int8 pages.
inline void FindInt8Rows(const AttentionTile& tile, uint32_t position, uint32_t n, Int8Rows* out) {
  const KvGroup& group = *tile.group;
  const size_t dim = group.head_dim;
  out->n = n;
  out->n_parts = 0;
  for (uint32_t t = 0; t < n;) {
    const uint32_t at = position + t, slot = at % group.page_tokens;
    const uint32_t count = Min(n - t, group.page_tokens - slot);
    const KvHeadPage page = KvPageAt(group, tile.pools, KvPageOf(group, *tile.table, at),
                                     tile.group_layer, tile.kv_head);
    const Int8Rows::Part part = {static_cast<const float*>(page.k.scales) + slot,
                                 static_cast<const float*>(page.v.scales) + slot, count};
    const auto* k = reinterpret_cast<const int8_t*>(page.k.values) + slot * dim;
    const auto* v = reinterpret_cast<const int8_t*>(page.v.values) + slot * dim;
    PrefetchBytes(part.k_scales, count * sizeof(float));
    PrefetchBytes(part.v_scales, count * sizeof(float));
    out->parts[out->n_parts++] = part;
    for (uint32_t end = t + count; t < end; ++t, k += dim, v += dim) out->k[t] = k, out->v[t] = v;
  }
  for (uint32_t t = n; t % kDotBlock != 0; ++t)
    out->k[t] = out->k[n - 1], out->v[t] = out->v[n - 1];
}

// The scales of a tile's tokens, zeros behind the last.
struct Int8Scales {
  float k[kDotTokens];
  float v[kDotTokens];
};
inline void LoadScales(const Int8Rows& rows, Int8Scales* out) {
  uint32_t t = 0;
  for (uint32_t i = 0; i < rows.n_parts; t += rows.parts[i++].n) {
    std::memcpy(out->k + t, rows.parts[i].k_scales, rows.parts[i].n * sizeof(float));
    std::memcpy(out->v + t, rows.parts[i].v_scales, rows.parts[i].n * sizeof(float));
  }
  for (; t < kDotTokens; ++t) out->k[t] = out->v[t] = 0.0f;
}

// x[stride] as numbers of 16 bits in two planes of `stride` signed bytes; x = returned factor *
// (256 * high + low). stride is a multiple of kMaxLanes; x is zeros behind the head's channels. A
// query that is not finite has a factor of NaN, which every score of it becomes.
inline float QuantizeQuery(const float* x, size_t stride, int32_t* high, int32_t* low,
                           int32_t* high_sum, int32_t* low_sum) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint8_t, D> d8;
  constexpr float kLargest = 127 * 256 + 127;
  // As integers, sizes are in order, and what is not finite is beyond all others.
  const auto size_bits = hn::Set(di, 0x7FFFFFFF);
  auto largest = hn::Zero(di);
  for (size_t i = 0; i < stride; i += kLanes) {
    largest = hn::Max(largest, hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), size_bits));
  }
  const float max = F32FromBits(static_cast<uint32_t>(hn::ReduceMax(di, largest)));
  const bool is_finite = max < HUGE_VALF;
  // Nothing, too, when the quotient would not be finite.
  if (!is_finite || !(max > kLargest / 1e38f)) {
    std::memset(high, 0, stride);
    std::memset(low, 0, stride);
    *high_sum = *low_sum = 0;
    return is_finite ? 0.0f : std::nanf("");
  }
  const auto factor = hn::Set(d, kLargest / max), round = hn::Set(d, kRoundToInteger);
  auto* high_bytes = reinterpret_cast<uint8_t*>(high);
  auto* low_bytes = reinterpret_cast<uint8_t*>(low);
  auto high_sums = hn::Zero(di), low_sums = hn::Zero(di);
  for (size_t i = 0; i < stride; i += kLanes) {
    const V rounded = hn::MulAdd(hn::LoadU(d, x + i), factor, round);
    const auto q = hn::Sub(hn::BitCast(di, rounded), hn::BitCast(di, round));
    const auto h = hn::ShiftRight<8>(hn::Add(q, hn::Set(di, 128)));
    const auto l = hn::Sub(q, hn::ShiftLeft<8>(h));
    hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, h)), d8, high_bytes + i);
    hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, l)), d8, low_bytes + i);
    high_sums = hn::Add(high_sums, h);
    low_sums = hn::Add(low_sums, l);
  }
  *high_sum = hn::ReduceSum(di, high_sums);
  *low_sum = hn::ReduceSum(di, low_sums);
  return max / kLargest;
}

// Weights times the scales of their values as numbers of 16 bits in two planes. Returns their
// factor.
HWY_INLINE float QuantizeWeights(const Int8Dot& dot, const TileScores<kDotTokens>& weights,
                                 uint8_t* high, uint8_t* low) {
  const D d;
  const hn::Repartition<uint16_t, D> d16;
  const hn::Repartition<uint8_t, D> d8;
  const float max = weights.Largest();
  const auto most = static_cast<float>(dot.weight_max);
  const bool nothing = !(max > most / 1e38f);
  const V factor = hn::Set(d, nothing ? 0.0f : most / max), round = hn::Set(d, kRoundToInteger);
  const auto nearest = [&](V w) HWY_ATTR { return hn::BitCast(d16, hn::MulAdd(w, factor, round)); };
  const auto rounding = hn::Set(d16, dot.weights_signed ? 128 : 0);
  // Four vectors at a time: of 4 bytes each keeps two, and each plane one of those.
  for (size_t i = 0; i < kDotTokens / kLanes; i += 4, high += 4 * kLanes, low += 4 * kLanes) {
    const V* w = weights.v + i;
    const auto a = hn::ConcatEven(d16, nearest(w[1]), nearest(w[0]));
    const auto b = hn::ConcatEven(d16, nearest(w[3]), nearest(w[2]));
    const auto upper_a = hn::BitCast(d8, hn::Add(a, rounding));
    const auto upper_b = hn::BitCast(d8, hn::Add(b, rounding));
    hn::StoreU(hn::ConcatOdd(d8, upper_b, upper_a), d8, high);
    // The low byte is the same whether it is read as signed or not.
    hn::StoreU(hn::ConcatEven(d8, hn::BitCast(d8, b), hn::BitCast(d8, a)), d8, low);
  }
  return nothing ? 0.0f : max / most;
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
