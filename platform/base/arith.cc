#include "platform/base/arith.h"

namespace arn {

uint16_t Bf16FromF32(float f) {
  const uint32_t bits = BitsFromF32(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  const uint32_t round = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((bits + round) >> 16);
}

float F32FromF16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return F32FromBits(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return F32FromBits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  // Subnormal: mantissa * 2^-24, exact in f32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return F32FromBits(sign | BitsFromF32(magnitude));
}

uint16_t F16FromF32(float f) {
  const uint32_t bits = BitsFromF32(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  // 65520 is the smallest value that rounds to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Subnormal half: adding 0.5 aligns the mantissa so that the FPU rounds at bit 2^-24.
    const float aligned = F32FromBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (BitsFromF32(aligned) - 0x3f000000u));
  }
  const uint32_t round = 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((magnitude + round - 0x38000000u) >> 13));
}

}  // namespace arn
