// What the files of Int8Dot with NEON's instructions share.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstdint>

#define ARN_NEON_INLINE __attribute__((always_inline)) inline

namespace arn::cpu {

// kChannels (8 or 16) channels of a row from `first` on, zeros behind the row's last and behind
// kChannels. kWhole: all of them are there.
template <bool kWhole, uint32_t kChannels = 16>
ARN_NEON_INLINE int8x16_t LoadRow(const int8_t* row, uint32_t first, uint32_t dim) {
  if constexpr (kWhole && kChannels == 16) return vld1q_s8(row + first);
  if constexpr (kWhole) return vcombine_s8(vld1_s8(row + first), vdup_n_s8(0));
  int8_t padded[16] = {};
  const uint32_t left = first < dim ? dim - first : 0;
  __builtin_memcpy(padded, row + first, left < kChannels ? left : kChannels);
  return vld1q_s8(padded);
}

}  // namespace arn::cpu
#endif
