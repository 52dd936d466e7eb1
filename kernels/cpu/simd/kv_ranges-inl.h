// Ranges of quantised values as floats. A range is a pair of f16 numbers: scale, least.
#if defined(ARN_KERNELS_CPU_SIMD_KV_RANGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_KV_RANGES_INL_H_
#undef ARN_KERNELS_CPU_SIMD_KV_RANGES_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_KV_RANGES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/cpu/simd/attention_scratch.h"
#include "kernels/cpu/simd/kv_rows-inl.h"
#include "platform/base/arith.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Pairs = hn::Vec<hn::RebindToUnsigned<D>>;  // a range per lane: scale in the low half

#if HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSE4
// Widens the f16 numbers in the upper halves of the lanes; ignores the lower halves.
HWY_INLINE V WidenUpperHalves(Pairs halves) {
  const D d;
  const hn::RebindToSigned<D> di;
  // As bits of a float, an f16 number lacks 112 in its exponent, subnormals included.
  const auto bits = hn::And(hn::ShiftRight<3>(hn::BitCast(di, halves)),
                            hn::Set(di, static_cast<int32_t>(0x8FFFE000)));
  const V finite = hn::Mul(hn::BitCast(d, bits), hn::Set(d, 0x1p112f));
  const auto is_finite = hn::Gt(hn::Set(di, 0x7C00 << 13), hn::And(bits, hn::Set(di, 0x7FFFFFFF)));
  const V infinity = hn::BitCast(d, hn::Set(di, 0x7F800000));
  return hn::Or(finite, hn::IfThenZeroElse(hn::RebindMask(d, is_finite), infinity));
}
#endif

// Separates ranges.
HWY_INLINE void SplitPairs(Pairs pairs, V* scale, V* least) {
#if HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSE4
  *scale = WidenUpperHalves(hn::ShiftLeft<16>(pairs));
  *least = WidenUpperHalves(pairs);
#elif HWY_TARGET == HWY_AVX2
  // In each block, four scales and then four leasts; one block widens to a whole vector.
  const D d;
  const hn::Repartition<uint8_t, D> d8;
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 1, 4, 5, 8,  9,  12, 13,
                                                     2, 3, 6, 7, 10, 11, 14, 15};
  const auto blocks =
      hn::BitCast(hn::Repartition<hwy::float16_t, D>(),
                  hn::TableLookupBytes(hn::BitCast(d8, pairs), hn::LoadDup128(d8, kOrder)));
  const V a = hn::PromoteLowerTo(d, blocks), b = hn::PromoteUpperTo(d, blocks);
  *scale = hn::ConcatLowerLower(d, b, a);
  *least = hn::ConcatUpperUpper(d, b, a);
#else
  const D d;
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> half;
  *scale = hn::PromoteTo(d, hn::BitCast(half, hn::TruncateTo(d16, pairs)));
  *least = hn::PromoteTo(d, hn::BitCast(half, hn::TruncateTo(d16, hn::ShiftRight<16>(pairs))));
#endif
}

HWY_INLINE Pairs LoadPairs(const uint16_t* ranges) {
  return hn::BitCast(hn::RebindToUnsigned<D>(), hn::LoadU(hn::Repartition<uint16_t, D>(), ranges));
}

// Calls use(i, scale, least) with the ranges from i on, for i = 0, kLanes ...; after the last of
// the n ranges, zeros.
template <typename Use>
HWY_INLINE void ForRanges(const uint16_t* ranges, size_t n, const Use& use) {
  V scale, least;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    SplitPairs(LoadPairs(ranges + 2 * i), &scale, &least);
    use(i, scale, least);
  }
  if (i == n) return;
  uint16_t left[2 * kLanes] = {};
  std::memcpy(left, ranges + 2 * i, 2 * (n - i) * sizeof(uint16_t));
  SplitPairs(LoadPairs(left), &scale, &least);
  use(i, scale, least);
}

// Loads n ranges as two rows of floats, zero-padded to whole vectors.
HWY_INLINE void LoadRanges(const uint16_t* ranges, size_t n, float* scale, float* least) {
  ForRanges(ranges, n, [&](size_t i, V s, V l) HWY_ATTR {
    hn::StoreU(s, D(), scale + i);
    hn::StoreU(l, D(), least + i);
  });
}

// Loads the value ranges of n tokens of a page: the scale of range g and token t goes to scale[g *
// width + t], zero-padded after the last token to whole vectors. scratch: 2 * n * n_ranges floats,
// each half rounded up to kMaxLanes.
HWY_INLINE void LoadValueRanges(const uint16_t* ranges, uint32_t n, uint32_t n_ranges, size_t width,
                                float* scale, float* least, float* scratch) {
  const D d;
  if (n_ranges == 1) return LoadRanges(ranges, n, scale, least);
  if (n_ranges == 2 && n % kLanes == 0) {
    const hn::RebindToUnsigned<D> du;
    for (size_t i = 0; i < n; i += kLanes) {
      const Pairs a = LoadPairs(ranges + 4 * i), b = LoadPairs(ranges + 4 * i + 2 * kLanes);
      const Pairs pairs[2] = {hn::ConcatEven(du, b, a), hn::ConcatOdd(du, b, a)};
      for (size_t g = 0; g < 2; ++g) {
        V s, l;
        SplitPairs(pairs[g], &s, &l);
        hn::StoreU(s, d, scale + g * width + i);
        hn::StoreU(l, d, least + g * width + i);
      }
    }
    return;
  }
  const size_t half = AlignUp(size_t{n} * n_ranges, kMaxLanes);
  LoadRanges(ranges, size_t{n} * n_ranges, scratch, scratch + half);
  for (float* to : {scale, least}) {
    const float* from = to == scale ? scratch : scratch + half;
    for (uint32_t g = 0; g < n_ranges; ++g) {
      float* row = to + g * width;
      for (uint32_t t = 0; t < n; ++t) row[t] = from[t * n_ranges + g];
      for (size_t t = n; t < AlignUp(n, kLanes); ++t) row[t] = 0.0f;
    }
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
