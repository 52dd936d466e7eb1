#include <cmath>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/norm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

// LayerNorm of one row as in torch: the mean, then the deviation from it. Two passes; the second
// reads from L1.
void LayerNorm(const NormArgs& args, const float* x, size_t n, float* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto zero = hn::Zero(d);
  auto sum = zero;
  for (size_t i = 0; i < n; i += lanes) sum = hn::Add(sum, hn::LoadN(d, x + i, n - i));
  const float mean = hn::ReduceSum(d, sum) / static_cast<float>(n);
  const auto centre = hn::Set(d, mean);
  auto squares = zero;
  for (size_t i = 0; i < n; i += lanes) {
    const auto deviation = hn::Sub(hn::LoadNOr(centre, d, x + i, n - i), centre);
    squares = hn::MulAdd(deviation, deviation, squares);
  }
  const float variance = hn::ReduceSum(d, squares) / static_cast<float>(n);
  const auto inverse = hn::Set(d, 1.0f / std::sqrt(variance + args.epsilon));
  for (size_t i = 0; i < n; i += lanes) {
    const size_t rest = n - i;
    const auto y = hn::Mul(hn::Sub(hn::LoadN(d, x + i, rest), centre), inverse);
    auto scaled =
        hn::MulAdd(y, hn::LoadN(d, args.weight + i, rest), hn::LoadN(d, args.bias + i, rest));
    if (args.accumulate) scaled = hn::Add(hn::LoadN(d, out + i, rest), scaled);
    hn::StoreN(scaled, d, out + i, rest);
  }
}

void Norm(const NormArgs& args, const float* x, uint32_t n, float* out) {
  switch (args.kind) {
    case NormKind::kRms:
      if (args.accumulate) {
        NormRowInto<true>(x, args.weight, n, args.epsilon, out);
      } else {
        NormRow(x, args.weight, n, args.epsilon, out);
      }
      return;
    case NormKind::kLayer: LayerNorm(args, x, n, out); return;
  }
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(Norm);
NormFn ChooseNorm() { return HWY_DYNAMIC_POINTER(Norm); }

}  // namespace arn::cpu
#endif
