#include <cmath>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/rms_norm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "kernels/cpu/simd/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace arn::cpu::HWY_NAMESPACE {

void RmsNorm(const float* x, const float* weight, uint32_t n, float epsilon, float* out) {
  NormRow(x, weight, n, epsilon, out);
}

}  // namespace arn::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arn::cpu {

HWY_EXPORT(RmsNorm);
RmsNormFn ChooseRmsNorm() { return HWY_DYNAMIC_POINTER(RmsNorm); }

}  // namespace arn::cpu
#endif
