// The integers of a low-rank change (kernels/contract/adapter.h) as vectors of bytes.
#if defined(ARN_KERNELS_CPU_SIMD_LOW_RANK_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_LOW_RANK_PAIRS_INL_H_
#undef ARN_KERNELS_CPU_SIMD_LOW_RANK_PAIRS_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_LOW_RANK_PAIRS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/contract/adapter.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using LowRankSums = hn::CappedTag<int32_t, kLowRankColumns>;
using LowRankBytes8 = hn::Repartition<int8_t, LowRankSums>;
using LowRankByteVec = hn::Vec<LowRankBytes8>;
constexpr size_t kSumLanes = HWY_MAX_LANES_D(LowRankSums);
constexpr size_t kSumParts = kLowRankColumns / kSumLanes;

// Unpacks kLowRankInputs inputs of a panel, two groups of four. int8 stores the groups one after
// the other; int4 stores both in one vector, of which a shift and a mask leave the bytes of a
// group. int8 is shifted by 0 and masked too: one code path, and its limit is memory.
struct LowRankPairs {
  explicit LowRankPairs(DType dtype)
      : second(dtype == DType::kInt4 ? 0 : kGroupBytes),
        bytes(second + kGroupBytes),
        shift(dtype == DType::kInt4 ? 4 : 0),
        mask(dtype == DType::kInt4 ? 0xF0 : 0xFF) {}

  // Return part v of kSumParts of the pair's first group, and of its second. w: of the pair.
  HWY_INLINE LowRankByteVec First(const std::byte* w, size_t v) const {
    return Masked(hn::ShiftLeftSame(Loaded(w, v), shift));
  }
  HWY_INLINE LowRankByteVec Second(const std::byte* w, size_t v) const {
    return Masked(Loaded(w + second, v));
  }

  const size_t second;  // from the first group to the second, in bytes
  const size_t bytes;   // from pair to pair

 private:
  static constexpr size_t kGroupBytes = 4 * kLowRankColumns;

  HWY_INLINE hn::Vec<LowRankSums> Loaded(const std::byte* w, size_t v) const {
    const auto* at = reinterpret_cast<const int8_t*>(w) + v * 4 * kSumLanes;
    return hn::BitCast(LowRankSums(), hn::LoadU(LowRankBytes8(), at));
  }
  HWY_INLINE LowRankByteVec Masked(hn::Vec<LowRankSums> bits) const {
    return hn::And(hn::BitCast(LowRankBytes8(), bits),
                   hn::Set(LowRankBytes8(), static_cast<int8_t>(mask)));
  }

  const int shift;
  const uint8_t mask;
};

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
