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

// Where the rows of a tile lie, which may be in several pages: in strips (DotRow), and the scales
// of a strip's tokens, one after another. The last strip is there once more where a block lacks
// one.
struct Int8Rows {
  static constexpr uint32_t kStrips = kDotTokens / kKvStrip;
  uint32_t n = 0;  // tokens
  const int8_t* k[kStrips];
  const int8_t* v[kStrips];
  const float* k_scales[kStrips];
  const float* v_scales[kStrips];
};

// Into the second cache, which can wait for more lines at once than the first. Inlined, or GCC
// drops the call of a function that has no other effect.
HWY_INLINE void PrefetchBytes(const void* from, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  for (size_t i = 0; i < bytes; i += kLineBytes) {
    __builtin_prefetch(static_cast<const std::byte*>(from) + i, 0, 2);
  }
}

// Asks for a block's rows, which are to be there when the tile before has been worked on.
HWY_INLINE void PrefetchBlock(const Int8Rows& rows, uint32_t first, size_t dim) {
  const uint32_t end = Min(rows.n, first + kDotBlock);
  for (uint32_t t = first; t < end; t += kKvStrip) {
    const size_t bytes = Min(end - t, kKvStrip) * dim;
    PrefetchBytes(rows.k[t / kKvStrip], bytes);
    PrefetchBytes(rows.v[t / kKvStrip], bytes);
  }
}

// The open int8 pages that a task reads.
class Int8Pages {
 public:
  // Pages of whole strips, or no tile of int8 is ever found.
  explicit Int8Pages(const AttentionTile& tile) {
    if (tile.dot == nullptr || tile.group->page_tokens % kKvStrip != 0) return;
    group_ = tile.group;
    table_ = tile.table;
    first_ = KvPageAt(*tile.group, tile.pools, 0, tile.group_layer, tile.kv_head);
  }

  // The tile that begins at `position` and ends at its own end, at `end`, or where a page is
  // sealed; no tokens where that is at once.
  HWY_INLINE void Find(uint32_t position, uint32_t end, Int8Rows* out) const {
    out->n = 0;
    if (group_ == nullptr || position >= end) return;
    const uint32_t page_tokens = group_->page_tokens;
    const size_t dim = group_->head_dim;
    const uint32_t* page = table_->pages + (position / page_tokens - table_->first_page);
    uint32_t slot = position % page_tokens, strip = 0;
    end = Min(end, position - position % kDotTokens + kDotTokens);
    for (uint32_t at = position; at < end && (*page & kSealedPage) == 0; ++page, slot = 0) {
      const uint32_t n = Min(end - at, page_tokens - slot);
      const uint64_t bytes = *page * group_->open.page_bytes;
      const auto* k = reinterpret_cast<const int8_t*>(first_.k.values + bytes) + slot * dim;
      const auto* v = reinterpret_cast<const int8_t*>(first_.v.values + bytes) + slot * dim;
      const float* k_scales = ScalesAt(first_.k, bytes) + slot;
      const float* v_scales = ScalesAt(first_.v, bytes) + slot;
      PrefetchBytes(k_scales, n * sizeof(float));
      PrefetchBytes(v_scales, n * sizeof(float));
      for (uint32_t t = 0; t < n; t += kKvStrip, ++strip) {
        out->k[strip] = k + t * dim;
        out->v[strip] = v + t * dim;
        out->k_scales[strip] = k_scales + t;
        out->v_scales[strip] = v_scales + t;
      }
      at += n;
      out->n = at - position;
    }
    for (; strip % (kDotBlock / kKvStrip) != 0; ++strip) {
      out->k[strip] = out->k[strip - 1];
      out->v[strip] = out->v[strip - 1];
    }
  }

 private:
  static const float* ScalesAt(const KvHeadBlock& block, uint64_t bytes) {
    return reinterpret_cast<const float*>(static_cast<const std::byte*>(block.scales) + bytes);
  }

  const KvGroup* group_ = nullptr;
  const PageTable* table_ = nullptr;
  KvHeadPage first_;
};

// The scales of a tile's tokens, zeros behind the last.
struct Int8Scales {
  float k[kDotTokens];
  float v[kDotTokens];
};
inline void LoadScales(const Int8Rows& rows, Int8Scales* out) {
  // Of whole strips: a copy of known size is an instruction or two.
  for (uint32_t t = 0; t < rows.n; t += kKvStrip) {
    std::memcpy(out->k + t, rows.k_scales[t / kKvStrip], kKvStrip * sizeof(float));
    std::memcpy(out->v + t, rows.v_scales[t / kKvStrip], kKvStrip * sizeof(float));
  }
  for (uint32_t t = rows.n; t < kDotTokens; ++t) out->k[t] = out->v[t] = 0.0f;
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
