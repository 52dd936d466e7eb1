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

QuantizedRow FindParameters(const float* x, uint32_t n) {
  const hn::ScalableTag<float> d;
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
  return ParametersOf(hn::ReduceMin(d, hn::Min(low, low2)), hn::ReduceMax(d, hn::Max(high, high2)));
}

// From floats to integers, a vector at a time.
struct Quantizer {
  explicit HWY_INLINE Quantizer(const QuantizedRow& row)
      : multiplier(hn::Set(d, 1.0f / row.scale)),
        smallest(hn::Set(d, kQuantMin - static_cast<float>(row.zero_point))),
        largest(hn::Set(d, kQuantMax - static_cast<float>(row.zero_point))),
        zero_point(hn::Set(di32, row.zero_point)) {}

  HWY_INLINE auto operator()(hn::Vec<hn::ScalableTag<float>> x) const {
    const auto q = hn::Max(hn::Min(hn::Mul(x, multiplier), largest), smallest);
    return hn::DemoteTo(di8, hn::Add(hn::NearestInt(q), zero_point));
  }

  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, hn::ScalableTag<float>> di32;
  const hn::Rebind<int8_t, hn::ScalableTag<float>> di8;
  const hn::Vec<hn::ScalableTag<float>> multiplier, smallest, largest;
  const hn::Vec<hn::Rebind<int32_t, hn::ScalableTag<float>>> zero_point;
};

QuantizedRow QuantizeRow(const float* x, uint32_t n, uint32_t padded, int8_t* values) {
  const QuantizedRow row = FindParameters(x, n);
  const Quantizer quantize(row);
  const auto d = quantize.d;
  const auto di8 = quantize.di8;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(quantize(hn::LoadU(d, x + i)), di8, values + i);
  }
  if (i < n) hn::StoreN(quantize(hn::LoadN(d, x + i, n - i)), di8, values + i, n - i);
  std::memset(values + n, 0, padded - n);
  return row;
}

QuantizedRow QuantizeQuads(const float* x, uint32_t n, uint32_t padded, uint32_t stride,
                           uint8_t* quads) {
  const QuantizedRow row = FindParameters(x, n);
  const Quantizer quantize(row);
  const auto d = quantize.d;
  const auto offset = hn::Set(quantize.di8, static_cast<int8_t>(-128));
  const hn::Repartition<uint32_t, decltype(quantize.di8)> du32;
  constexpr size_t kLanes = HWY_MAX_LANES_D(hn::ScalableTag<float>), kQuads = kLanes / 4;
  uint8_t* to = quads;
  for (size_t i = 0; i < n; i += kLanes) {
    // What is past the end meets weights that are zero; whole vectors fit into `padded`.
    const auto v = i + kLanes <= n ? hn::LoadU(d, x + i) : hn::LoadN(d, x + i, n - i);
    uint32_t whole[kQuads];
    hn::StoreU(hn::BitCast(du32, hn::Xor(quantize(v), offset)), du32, whole);
    for (size_t q = 0; q < kQuads; ++q, to += stride) {
      std::memcpy(to, whole + q, sizeof whole[q]);
    }
  }
  for (const uint8_t* end = quads + uint64_t{padded} / 4 * stride; to < end; to += stride) {
    std::memset(to, 0, sizeof(uint32_t));
  }
  return row;
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(QuantizeRow);
HWY_EXPORT(QuantizeQuads);
QuantizeQuadsFn ChooseQuantizeQuads() { return HWY_DYNAMIC_POINTER(QuantizeQuads); }
QuantizeRowFn ChooseQuantizeRow() { return HWY_DYNAMIC_POINTER(QuantizeRow); }

}  // namespace arn::cpu
#endif
