#include "kernels/kv_rows.h"

#include <cmath>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

void StoreInt8(const float* x, uint32_t n, std::byte* out, float* scale) {
  float largest = 0.0f;
  for (uint32_t i = 0; i < n; ++i) largest = Max(largest, std::fabs(x[i]));
  *scale = largest / 127.0f;
  for (uint32_t i = 0; i < n; ++i) {
    const float q = *scale == 0.0f ? 0.0f : x[i] / *scale;
    out[i] =
        static_cast<std::byte>(static_cast<int8_t>(std::nearbyintf(Max(-127.0f, Min(127.0f, q)))));
  }
}

}  // namespace

void StoreKvRow(const float* x, DType dtype, uint32_t slot, uint32_t head_dim, std::byte* values,
                float* scales) {
  std::byte* out = values + uint64_t{slot} * head_dim * ElementBytes(dtype);
  switch (dtype) {
    case DType::kF32: std::memcpy(out, x, head_dim * sizeof(float)); return;
    case DType::kF16:
      for (uint32_t i = 0; i < head_dim; ++i) {
        const uint16_t half = F16FromF32(x[i]);
        std::memcpy(out + i * sizeof half, &half, sizeof half);
      }
      return;
    case DType::kInt8: StoreInt8(x, head_dim, out, scales + slot); return;
    case DType::kBf16:
    case DType::kInt4: return;  // CheckProgram refuses them
  }
}

void LoadKvRow(const std::byte* values, const float* scales, DType dtype, uint32_t slot,
               uint32_t head_dim, float* x) {
  const std::byte* in = values + uint64_t{slot} * head_dim * ElementBytes(dtype);
  switch (dtype) {
    case DType::kF32: std::memcpy(x, in, head_dim * sizeof(float)); return;
    case DType::kF16:
      for (uint32_t i = 0; i < head_dim; ++i) {
        uint16_t half;
        std::memcpy(&half, in + i * sizeof half, sizeof half);
        x[i] = F32FromF16(half);
      }
      return;
    case DType::kInt8:
      for (uint32_t i = 0; i < head_dim; ++i) {
        x[i] = static_cast<float>(static_cast<int8_t>(in[i])) * scales[slot];
      }
      return;
    case DType::kBf16:
    case DType::kInt4: return;  // CheckProgram refuses them
  }
}

}  // namespace arn
