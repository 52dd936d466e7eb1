// Code shared by the files of Int8Dot with NEON.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstdint>

#define ARN_NEON_INLINE __attribute__((always_inline)) inline

namespace arn::cpu {

// Largest weight representable in two signed bytes.
inline constexpr int32_t kNeonWeightMax = 127 * 256 + 127;

// Stores the scores of four tokens, given the sums of the high and low planes.
ARN_NEON_INLINE void StoreScores(int32x4_t high, int32x4_t low, float* out) {
  vst1q_f32(out, vfmaq_n_f32(vcvtq_f32_s32(low), vcvtq_f32_s32(high), 256.0f));
}

// out += factor * the sums of four channels.
ARN_NEON_INLINE void AddSums(int32x4_t high, int32x4_t low, float factor, float* out) {
  const int32x4_t sum = vaddq_s32(vshlq_n_s32(high, 8), low);
  vst1q_f32(out, vfmaq_n_f32(vld1q_f32(out), vcvtq_f32_s32(sum), factor));
}

// Loads kChannels (8 or 16) channels of a row from `first` on, zero-padded after the row's end and
// after kChannels. kWhole: all of them exist.
template <bool kWhole, uint32_t kChannels = 16>
ARN_NEON_INLINE int8x16_t LoadRow(const int8_t* row, uint32_t first, uint32_t dim) {
  if constexpr (kWhole && kChannels == 16) return vld1q_s8(row + first);
  if constexpr (kWhole) return vcombine_s8(vld1_s8(row + first), vdup_n_s8(0));
  int8_t padded[16] = {};
  const uint32_t left = first < dim ? dim - first : 0;
  __builtin_memcpy(padded, row + first, left < kChannels ? left : kChannels);
  return vld1q_s8(padded);
}

// Returns value kField of each byte of packed kBits values.
template <uint32_t kBits, uint32_t kField>
ARN_NEON_INLINE int8x16_t ValueOf(uint8x16_t bytes) {
  uint8x16_t x = bytes;
  if constexpr (kField != 0) x = vshrq_n_u8(x, kField * kBits);
  if constexpr ((kField + 1) * kBits < 8) x = vandq_u8(x, vdupq_n_u8((1 << kBits) - 1));
  return vreinterpretq_s8_u8(x);
}

}  // namespace arn::cpu
#endif
