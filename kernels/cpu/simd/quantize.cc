// Quantises rows of activations to int8 like XNNPACK's qd8 convert operator.
#include <cmath>
#include <cstring>

#include "kernels/contract/code_type.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"
#include "kernels/math/round.h"
#include "platform/base/arith.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/quantize.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kQuantMin = -128.0f, kQuantMax = 127.0f;

// As xnn_f32_qd8_asymmetric_quantization_params. REQUIRES: low <= 0 <= high.
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

// Parameters of a row. `multiplier`: the inverse of the scale, or what the scale is the inverse of.
struct RowParameters {
  QuantizedRow row;
  float multiplier;
};

RowParameters SymmetricParametersOf(float low, float high) {
  const float multiplier = kQuantMax / Max(Max(-low, high), kLeastSymmetricRange);
  return {{0, 1.0f / multiplier}, multiplier};
}

RowParameters FindParameters(const float* x, uint32_t n, bool is_symmetric) {
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
    const auto a = hn::LoadN(d, x + i, n - i);  // zeros past the end have no effect
    low = hn::Min(low, a);
    high = hn::Max(high, a);
  }
  const float least = hn::ReduceMin(d, hn::Min(low, low2));
  const float most = hn::ReduceMax(d, hn::Max(high, high2));
  if (kHasLowBits && is_symmetric) return SymmetricParametersOf(least, most);
  const QuantizedRow row = ParametersOf(least, most);
  return {row, 1.0f / row.scale};
}

// Converts floats to bytes.
struct Quantizer {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Bytes = hn::Vec<hn::Repartition<uint8_t, D>>;
  static constexpr size_t kLanes = HWY_MAX_LANES_D(D);

  explicit HWY_INLINE Quantizer(const RowParameters& by)
      : multiplier(hn::Set(d, by.multiplier)),
        smallest(hn::Set(d, kQuantMin - static_cast<float>(by.row.zero_point))),
        largest(hn::Set(d, kQuantMax - static_cast<float>(by.row.zero_point))),
        zero_point(hn::Set(d8, static_cast<uint8_t>(by.row.zero_point))) {}

  // Quantises four consecutive vectors, in order.
  HWY_INLINE Bytes operator()(const float* x) const {
    return Pack(Nearest(hn::LoadU(d, x)), Nearest(hn::LoadU(d, x + kLanes)),
                Nearest(hn::LoadU(d, x + 2 * kLanes)), Nearest(hn::LoadU(d, x + 3 * kLanes)));
  }
  // Quantises the first n floats (fewer than four vectors); the remaining bytes are those of zeros.
  HWY_INLINE Bytes operator()(const float* x, size_t n) const {
    const auto at = [&](size_t i) HWY_ATTR {
      return Nearest(i < n ? hn::LoadN(d, x + i, n - i) : hn::Zero(d));
    };
    return Pack(at(0), at(kLanes), at(2 * kLanes), at(3 * kLanes));
  }

  HWY_INLINE V Nearest(V x) const {
    const V clamped = hn::Max(hn::Min(hn::Mul(x, multiplier), largest), smallest);
    return hn::Add(clamped, hn::Set(d, kRoundToInteger));
  }
  HWY_INLINE Bytes Pack(V x0, V x1, V x2, V x3) const {
    const auto low = hn::ConcatEven(d16, hn::BitCast(d16, x1), hn::BitCast(d16, x0));
    const auto high = hn::ConcatEven(d16, hn::BitCast(d16, x3), hn::BitCast(d16, x2));
    return hn::Add(hn::ConcatEven(d8, hn::BitCast(d8, high), hn::BitCast(d8, low)), zero_point);
  }

  const D d;
  const hn::Repartition<uint16_t, D> d16;
  const hn::Repartition<uint8_t, D> d8;
  const V multiplier, smallest, largest;
  const Bytes zero_point;
};

QuantizedRow QuantizeRow(const float* x, uint32_t n, uint32_t padded, int8_t* values) {
  constexpr size_t kStep = 4 * Quantizer::kLanes;
  const RowParameters by = FindParameters(x, n, false);
  const Quantizer quantize(by);
  auto* to = reinterpret_cast<uint8_t*>(values);
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) hn::StoreU(quantize(x + i), quantize.d8, to + i);
  if (i < n) hn::StoreN(quantize(x + i, n - i), quantize.d8, to + i, n - i);
  std::memset(values + n, 0, padded - n);
  return by.row;
}

template <size_t kGroup>
QuantizedRow QuantizeGroupsOf(const float* x, uint32_t n, uint32_t padded, uint32_t stride,
                              bool is_symmetric, uint8_t* to) {
  constexpr size_t kStep = 4 * Quantizer::kLanes;
  const RowParameters by = FindParameters(x, n, is_symmetric);
  const Quantizer quantize(by);
  const auto offset = hn::Set(quantize.d8, 128);
  for (size_t i = 0; i < padded; i += kStep) {
    const size_t left = i < n ? n - i : 0;
    const auto v = hn::Xor(left >= kStep ? quantize(x + i) : quantize(x + i, left), offset);
    if (stride == kGroup && i + kStep <= padded) {
      hn::StoreU(v, quantize.d8, to);
      to += kStep;
      continue;
    }
    HWY_ALIGN uint8_t groups[kStep];
    hn::Store(v, quantize.d8, groups);
    const size_t end = HWY_MIN(kStep, padded - i);
    for (size_t at = 0; at < end; at += kGroup, to += stride) {
      std::memcpy(to, groups + at, kGroup);
    }
  }
  return by.row;
}

QuantizedRow QuantizeGroups(const float* x, uint32_t n, uint32_t padded, uint32_t group,
                            uint32_t stride, bool is_symmetric, uint8_t* groups) {
  return group == 4 ? QuantizeGroupsOf<4>(x, n, padded, stride, is_symmetric, groups)
                    : QuantizeGroupsOf<8>(x, n, padded, stride, is_symmetric, groups);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(QuantizeRow);
HWY_EXPORT(QuantizeGroups);
QuantizeGroupsFn ChooseQuantizeGroups() { return HWY_DYNAMIC_POINTER(QuantizeGroups); }
QuantizeRowFn ChooseQuantizeRow() { return HWY_DYNAMIC_POINTER(QuantizeRow); }

}  // namespace arn::cpu
#endif
