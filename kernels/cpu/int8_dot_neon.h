// What the files of Int8Dot with NEON's instructions share.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstdint>

namespace arn::cpu {

// Channels [first, first + 16) of a row, zeros behind the last.
inline int8x16_t LoadRow(const int8_t* row, uint32_t first, uint32_t dim) {
  int8_t padded[sizeof(int8x16_t)] = {};
  if (dim >= first + sizeof padded) return vld1q_s8(row + first);
  if (dim > first) __builtin_memcpy(padded, row + first, dim - first);
  return vld1q_s8(padded);
}

}  // namespace arn::cpu
#endif
