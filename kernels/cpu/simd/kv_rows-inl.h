// Keys and values of a page as rows of floats, whatever the page keeps them in.
#if defined(ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
#undef ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/kv_page.h"
#include "kernels/program.h"
#include "platform/base/arith.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_MAX_LANES_D(D);

// Tokens of a page as f32 rows of `stride`.
struct Rows {
  const float* data;
  size_t stride;
};

template <typename T, class DT>
void WidenRow(const T* from, size_t n, float* to) {
  const D d;
  const DT dt;
  size_t i = 0;
  auto widen = [&](auto v) HWY_ATTR {
    if constexpr (sizeof(T) == 1) {
      return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), v));
    } else {
      return hn::PromoteTo(d, v);
    }
  };
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(widen(hn::LoadU(dt, from + i)), d, to + i);
  if (i < n) hn::StoreU(widen(hn::LoadN(dt, from + i, n - i)), d, to + i);
}

// [bits * plane, bits * (plane + 1)) of n bytes as floats: least[i] + scale[i] * value.
inline void WidenPlane(const std::byte* from, size_t n, uint32_t shift, uint32_t mask,
                       const float* scale, const float* least, float* to) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  const auto keep = hn::Set(di, static_cast<int32_t>(mask));
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t left = Min(kLanes, n - i);
    const auto packed = hn::PromoteTo(di, hn::LoadN(d8, bytes + i, left));
    const auto value =
        hn::ConvertTo(d, hn::And(hn::ShiftRightSame(packed, static_cast<int>(shift)), keep));
    hn::StoreN(hn::MulAdd(value, hn::LoadN(d, scale + i, left), hn::LoadN(d, least + i, left)), d,
               to + i, left);
  }
}

// The ranges of one sealed slot, an f32 pair an element.
struct Ranges {
  float scale[kMaxHeadDim];
  float least[kMaxHeadDim];
};

inline void LoadRanges(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot,
                       Ranges* out) {
  const auto* pairs = static_cast<const uint16_t*>(block.scales);
  if (keys) {
    pairs += uint64_t{2} * (slot / group.group_size) * group.head_dim;
    for (uint32_t i = 0; i < group.head_dim; ++i) {
      out->scale[i] = F32FromF16(pairs[2 * i]);
      out->least[i] = F32FromF16(pairs[2 * i + 1]);
    }
    return;
  }
  const uint32_t n_groups = KvGroupsOf(group.head_dim, group.group_size);
  pairs += uint64_t{2} * slot * n_groups;
  for (uint32_t g = 0; g < n_groups; ++g) {
    const float scale = F32FromF16(pairs[2 * g]), least = F32FromF16(pairs[2 * g + 1]);
    const uint32_t end = Min((g + 1) * group.group_size, group.head_dim);
    for (uint32_t i = g * group.group_size; i < end; ++i) {
      out->scale[i] = scale;
      out->least[i] = least;
    }
  }
}

inline Rows LoadSealedRows(const KvGroup& group, bool keys, const KvHeadBlock& block,
                           uint32_t first, uint32_t n, float* scratch, size_t stride) {
  const uint32_t row_bytes = KvRowBytes(group.head_dim, block.bits);
  Ranges ranges;
  for (uint32_t t = 0; t < n; ++t) {
    const uint32_t slot = first + t;
    if (!keys || t == 0 || slot % group.group_size == 0) {
      LoadRanges(group, keys, block, slot, &ranges);
    }
    float* to = scratch + t * stride;
    for (uint32_t begin = 0, shift = 0; begin < group.head_dim;
         begin += row_bytes, shift += block.bits) {
      WidenPlane(block.values + uint64_t{slot} * row_bytes, Min(row_bytes, group.head_dim - begin),
                 shift, (1u << block.bits) - 1, ranges.scale + begin, ranges.least + begin,
                 to + begin);
    }
    for (size_t i = group.head_dim; i < stride; ++i) to[i] = 0.0f;
  }
  return {scratch, stride};
}

// Slots [first, first + n) of one kv head's K or V. f32 blocks with whole vectors are read where
// they are; others are widened into `scratch`, int8 without its scales.
inline Rows LoadRows(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t first,
                     uint32_t n, float* scratch, size_t stride) {
  if (block.bits != 0) return LoadSealedRows(group, keys, block, first, n, scratch, stride);
  const size_t dim = group.head_dim;
  const std::byte* from = block.values + first * dim * ElementBytes(block.type);
  if (block.type == DType::kF32 && dim % kLanes == 0) {
    return {reinterpret_cast<const float*>(from), dim};
  }
  // Without padding between them the rows are one long row.
  const size_t rows = dim == stride ? 1 : n, width = dim == stride ? n * dim : dim;
  for (size_t t = 0; t < rows; ++t) {
    float* to = scratch + t * stride;
    switch (block.type) {
      case DType::kF32:
        std::memcpy(to, from + t * dim * sizeof(float), width * sizeof(float));
        break;
      case DType::kF16:
        WidenRow<hwy::float16_t, hn::Rebind<hwy::float16_t, D>>(
            reinterpret_cast<const hwy::float16_t*>(from) + t * dim, width, to);
        break;
      case DType::kInt8:
        WidenRow<int8_t, hn::Rebind<int8_t, D>>(reinterpret_cast<const int8_t*>(from) + t * dim,
                                                width, to);
        break;
      case DType::kBf16:
      case DType::kInt4: break;  // CheckProgram refuses them
    }
    for (size_t i = dim; i < stride; ++i) to[i] = 0.0f;
  }
  return {scratch, stride};
}

// The factor of each slot that LoadRows left out; null when there is none.
inline const float* ScalesOf(const KvHeadBlock& block) {
  return block.bits == 0 && block.type == DType::kInt8 ? static_cast<const float*>(block.scales)
                                                       : nullptr;
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
