// Rows of activations to int8, as XNNPACK's qd8 convert operator does it.
#include <cmath>
#include <cstring>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/quantize.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kQuantMin = -128.0f, kQuantMax = 127.0f;

// xnn_f32_qd8_asymmetric_quantization_params; low <= 0 <= high.
QuantizedRow ParametersOf(float low, float high) {
  const float scale = low == high ? 1.0f : (kQuantMax - kQuantMin) / (high - low);
  const float scaled_low = low * scale;
  const float scaled_high = high * scale;
  float zero_point = (kQuantMin + scaled_low) + (kQuantMax + scaled_high) > 0.0f
                         ? kQuantMin - scaled_low
                         : kQuantMax - scaled_high;
  zero_point = Min(Max(zero_point, kQuantMin), kQuantMax);
  return {static_cast<int32_t>(std::nearbyintf(zero_point)), 1.0f / scale};
}

QuantizedRow QuantizeRow(const float* x, uint32_t n, uint32_t padded, int8_t* values) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> di32;
  const hn::Rebind<int8_t, decltype(d)> di8;
  const size_t lanes = hn::Lanes(d);
  auto low = hn::Zero(d), high = hn::Zero(d), low2 = hn::Zero(d), high2 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    low = hn::Min(low, a);
    high = hn::Max(high, a);
    low2 = hn::Min(low2, b);
    high2 = hn::Max(high2, b);
  }
  for (; i < n; i += lanes) {
    const auto a = hn::LoadN(d, x + i, n - i);  // zeros past the end change nothing
    low = hn::Min(low, a);
    high = hn::Max(high, a);
  }
  const QuantizedRow row =
      ParametersOf(hn::ReduceMin(d, hn::Min(low, low2)), hn::ReduceMax(d, hn::Max(high, high2)));
  const float zero_point = static_cast<float>(row.zero_point);
  const auto multiplier = hn::Set(d, 1.0f / row.scale);
  const auto smallest = hn::Set(d, kQuantMin - zero_point);
  const auto largest = hn::Set(d, kQuantMax - zero_point);
  const auto offset = hn::Set(di32, row.zero_point);
  auto quantize = [&](auto v) HWY_ATTR {
    const auto q = hn::Max(hn::Min(hn::Mul(v, multiplier), largest), smallest);
    return hn::DemoteTo(di8, hn::Add(hn::NearestInt(q), offset));
  };
  for (i = 0; i + lanes <= n; i += lanes) {
    hn::StoreU(quantize(hn::LoadU(d, x + i)), di8, values + i);
  }
  if (i < n) hn::StoreN(quantize(hn::LoadN(d, x + i, n - i)), di8, values + i, n - i);
  std::memset(values + n, 0, padded - n);
  return row;
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(QuantizeRow);
QuantizeRowFn ChooseQuantizeRow() { return HWY_DYNAMIC_POINTER(QuantizeRow); }

}  // namespace arn::cpu
#endif
