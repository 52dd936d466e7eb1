#include <cmath>

#include "kernels/contract/code_type.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {

namespace {

QuantizedRow QuantizeSymmetricRow(const float* x, uint32_t n, int8_t* values) {
  float most = kLeastSymmetricRange;
  for (uint32_t i = 0; i < n; ++i) most = Max(most, std::fabs(x[i]));
  const float multiplier = 127.0f / most;
  for (uint32_t i = 0; i < n; ++i) {
    values[i] = static_cast<int8_t>(std::nearbyintf(x[i] * multiplier));
  }
  return {0, 1.0f / multiplier};
}

}  // namespace

QuantizedRow QuantizeRow(const float* x, uint32_t n, bool is_symmetric, int8_t* values) {
  if (is_symmetric) return QuantizeSymmetricRow(x, n, values);
  float low = 0.0f, high = 0.0f;
  for (uint32_t i = 0; i < n; ++i) {
    low = Min(low, x[i]);
    high = Max(high, x[i]);
  }
  constexpr float kMin = -128.0f, kMax = 127.0f;
  const float scale = low == high ? 1.0f : (kMax - kMin) / (high - low);
  const float scaled_low = low * scale;
  const float scaled_high = high * scale;
  float zero_point =
      (kMin + scaled_low) + (kMax + scaled_high) > 0.0f ? kMin - scaled_low : kMax - scaled_high;
  zero_point = Min(Max(zero_point, kMin), kMax);
  QuantizedRow row;
  row.zero_point = static_cast<int32_t>(std::nearbyintf(zero_point));
  row.scale = 1.0f / scale;
  const float multiplier = 1.0f / row.scale;
  const float offset = static_cast<float>(row.zero_point);
  for (uint32_t i = 0; i < n; ++i) {
    const float q = Max(Min(x[i] * multiplier, kMax - offset), kMin - offset);
    values[i] = static_cast<int8_t>(static_cast<int32_t>(std::nearbyintf(q)) + row.zero_point);
  }
  return row;
}

}  // namespace arn::reference
