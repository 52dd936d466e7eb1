// LogitsOps on vectors, bit-identical to the scalar version.
#include "kernels/contract/logits_ops.h"

#include <cmath>

#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/logits_ops.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Finds the maximum, then its index: two fast passes.
uint32_t Argmax(const float* logits, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto lowest = hn::Set(d, -HUGE_VALF);
  auto best = lowest;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, logits + i);
    best = hn::IfThenElse(hn::Gt(x, best), x, best);  // false for NaN
  }
  float largest = hn::ReduceMax(d, best);
  for (; i < n; ++i) {
    if (logits[i] > largest) largest = logits[i];
  }
  const auto wanted = hn::Set(d, largest);
  for (i = 0; i + lanes <= n; i += lanes) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, logits + i), wanted));
    if (at >= 0) return static_cast<uint32_t>(i + static_cast<size_t>(at));
  }
  for (; i < n; ++i) {
    if (logits[i] == largest) return static_cast<uint32_t>(i);
  }
  return 0;  // all are NaN
}

size_t CollectAtLeast(const float* logits, size_t n, float threshold, uint32_t* out,
                      size_t capacity) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto bound = hn::Set(d, threshold);
  size_t count = 0;
  for (size_t i = 0; i < n; i += lanes) {
    if (i + lanes <= n && hn::AllFalse(d, hn::Ge(hn::LoadU(d, logits + i), bound))) continue;
    for (size_t j = i; j < n && j < i + lanes; ++j) {
      if (!(logits[j] >= threshold)) continue;
      if (count < capacity) out[count] = static_cast<uint32_t>(j);
      ++count;
    }
  }
  return count;
}

// sums[j] += x[j] for 16 j.
void AddAsDouble(const float* x, double* sums) {
#if HWY_HAVE_FLOAT64
  const hn::CappedTag<double, 16> d;
  const hn::Rebind<float, decltype(d)> half;
  for (size_t j = 0; j < 16; j += hn::Lanes(d)) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(half, x + j));
    hn::Store(hn::Add(hn::Load(d, sums + j), wide), d, sums + j);
  }
#else  // 32-bit ARM
  for (size_t j = 0; j < 16; ++j) sums[j] += static_cast<double>(x[j]);
#endif
}

double ExpSum(float* x, size_t n, float max, float inverse_temperature) {
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d);
  const auto shift = hn::Set(d, max), factor = hn::Set(d, inverse_temperature);
  HWY_ALIGN double sums[16] = {};
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (size_t j = 0; j < 16; j += lanes) {
      const auto e = VecExpF32(d, hn::Mul(hn::Sub(hn::LoadU(d, x + i + j), shift), factor));
      hn::StoreU(e, d, x + i + j);
    }
    AddAsDouble(x + i, sums);
  }
  for (; i < n; ++i) {
    x[i] = ExpF32((x[i] - max) * inverse_temperature);
    sums[i % 16] += static_cast<double>(x[i]);
  }
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  }
  return sums[0];
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn {
namespace cpu {
namespace {

HWY_EXPORT(Argmax);
HWY_EXPORT(CollectAtLeast);
HWY_EXPORT(ExpSum);

uint32_t DispatchArgmax(const float* logits, size_t n) {
  return HWY_DYNAMIC_DISPATCH(Argmax)(logits, n);
}
size_t DispatchCollect(const float* logits, size_t n, float threshold, uint32_t* out,
                       size_t capacity) {
  return HWY_DYNAMIC_DISPATCH(CollectAtLeast)(logits, n, threshold, out, capacity);
}
double DispatchExpSum(float* x, size_t n, float max, float inverse_temperature) {
  return HWY_DYNAMIC_DISPATCH(ExpSum)(x, n, max, inverse_temperature);
}

constexpr LogitsOps kOps = {DispatchArgmax, DispatchCollect, DispatchExpSum};

}  // namespace
}  // namespace cpu

const LogitsOps* CpuLogitsOps() { return &cpu::kOps; }

}  // namespace arn
#endif
