#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/gate.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/exp-inl.h"
#include "kernels/cpu/simd/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// x *= gate / (1 + e^-gate), or 1 / (1 + e^-gate).
template <bool kSilu>
void Multiply(const float* gate, size_t n, float* x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0f);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto z = hn::LoadN(d, gate + i, n - i);
    const auto sum = hn::Add(one, VecExp(d, hn::Neg(z)));
    const auto y = hn::Mul(hn::LoadN(d, x + i, n - i), hn::Div(kSilu ? z : one, sum));
    hn::StoreN(y, d, x + i, n - i);
  }
}

void NormGroups(const GateArgs& args, size_t n, float* x) {
  for (size_t first = 0; first < n; first += args.norm_group) {
    const float* weight = args.norm + (args.norm_repeats ? 0 : first);
    NormRow(x + first, weight, args.norm_group, args.epsilon, x + first);
  }
}

void Gate(const GateArgs& args, const float* gate, uint32_t n, float* x) {
  if (args.norm != nullptr && args.norms_first) NormGroups(args, n, x);
  if (args.activation == Activation::kSilu) {
    Multiply<true>(gate, n, x);
  } else {
    Multiply<false>(gate, n, x);
  }
  if (args.norm != nullptr && !args.norms_first) NormGroups(args, n, x);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Gate);
GateFn ChooseGate() { return HWY_DYNAMIC_POINTER(Gate); }

}  // namespace arn::cpu
#endif
