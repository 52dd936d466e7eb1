// Reads keys and values of a page as rows of floats, from any stored format.
#if defined(ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
#undef ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
#else
#define ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/contract/kv_page.h"
#include "kernels/contract/program.h"
#include "platform/base/arith.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_MAX_LANES_D(D);

// Tokens of a page as f32 rows, `stride` apart.
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

// Widens kBits values of n bytes to floats, without their ranges: value j of byte i goes to to[j *
// n + i]. n is a multiple of kLanes.
template <uint32_t kBits>
HWY_INLINE void WidenBits(const uint8_t* from, size_t n, float* to) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const auto mask = hn::Set(di, (1 << kBits) - 1);
  const auto widen = [&](auto packed) HWY_ATTR { return hn::ConvertTo(d, hn::And(packed, mask)); };
  constexpr size_t kLast = 8 / kBits - 1;
  for (size_t i = 0; i < n; i += kLanes) {
    const auto packed = hn::PromoteTo(di, hn::LoadU(d8, from + i));
    hn::StoreU(widen(packed), d, to + i);
    if constexpr (kBits == 2) {
      hn::StoreU(widen(hn::ShiftRight<2>(packed)), d, to + n + i);
      hn::StoreU(widen(hn::ShiftRight<4>(packed)), d, to + 2 * n + i);
    }
    const auto last = hn::ShiftRight<8 - kBits>(packed);  // no bits above, so no mask
    hn::StoreU(hn::ConvertTo(d, last), d, to + kLast * n + i);
  }
}

// Widens n rows of `dim` such values, `stride` floats apart, zero-padded after `dim`.
template <uint32_t kBits>
void WidenQuantisedRows(const std::byte* rows, size_t n, size_t dim, size_t stride, float* to) {
  const size_t row_bytes = CeilDiv(dim * kBits, 8);
  const auto* from = reinterpret_cast<const uint8_t*>(rows);
  const bool is_whole = row_bytes % kLanes == 0 && row_bytes * 8 == dim * kBits;
  for (size_t t = 0; t < n; ++t, from += row_bytes, to += stride) {
    if (is_whole) {
      WidenBits<kBits>(from, row_bytes, to);
    } else {
      uint32_t shift = 0;
      for (size_t first = 0; first < dim; first += row_bytes, shift += kBits) {
        for (size_t i = 0; i < Min(row_bytes, dim - first); ++i) {
          const uint32_t value = static_cast<uint32_t>(from[i]) >> shift & ((1u << kBits) - 1);
          to[first + i] = static_cast<float>(value);
        }
      }
    }
    for (size_t i = dim; i < stride; ++i) to[i] = 0.0f;
  }
}

// Reads slots [first, first + n) of one kv head's K or V. f32 blocks of whole vectors are used in
// place. Other formats are widened into `scratch`: int8 without scales, 4 and 2 bits without
// ranges.
inline Rows LoadRows(const KvGroup& group, const KvHeadBlock& block, uint32_t first, uint32_t n,
                     float* scratch, size_t stride) {
  const size_t dim = group.head_dim;
  if (block.bits != 0) {
    const std::byte* rows = block.values + size_t{first} * KvRowBytes(group.head_dim, block.bits);
    const auto widen = block.bits == 4 ? WidenQuantisedRows<4> : WidenQuantisedRows<2>;
    widen(rows, n, dim, stride, scratch);
    return {scratch, stride};
  }
  const std::byte* from = block.values + first * dim * ElementBytes(block.type);
  if (block.type == DType::kF32 && dim % kLanes == 0) {
    return {reinterpret_cast<const float*>(from), dim};
  }
  // Unpadded rows are contiguous: one long row.
  const size_t rows = dim == stride ? 1 : n, width = dim == stride ? n * dim : dim;
  for (size_t t = 0; t < rows; ++t) {
    float* to = scratch + t * stride;
    // CheckProgram has rejected other types.
    if (block.type == DType::kF32) {
      std::memcpy(to, from + t * dim * sizeof(float), width * sizeof(float));
    } else if (block.type == DType::kF16) {
      WidenRow<hwy::float16_t, hn::Rebind<hwy::float16_t, D>>(
          reinterpret_cast<const hwy::float16_t*>(from) + t * dim, width, to);
    } else if (block.type == DType::kInt8) {
      WidenRow<int8_t, hn::Rebind<int8_t, D>>(reinterpret_cast<const int8_t*>(from) + t * dim,
                                              width, to);
    }
    for (size_t i = dim; i < stride; ++i) to[i] = 0.0f;
  }
  return {scratch, stride};
}

// Returns the scale of each slot, which LoadRows does not apply; null if there are none.
inline const float* ScalesOf(const KvHeadBlock& block) {
  return block.bits == 0 && block.type == DType::kInt8 ? static_cast<const float*>(block.scales)
                                                       : nullptr;
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ARN_KERNELS_CPU_SIMD_KV_ROWS_INL_H_
