#include "kernels/cpu/cpu_features.h"

#include <arn_cpuinfo.h>
#include <cpuinfo.h>

#include "kernels/cpu/simd/targets.h"
// Must follow targets.h.
#include <hwy/targets.h>

#include "platform/base/result.h"
#include "platform/os/topology.h"

namespace arn::cpu {

Status KnowCpu() {
  if (cpuinfo_initialize()) return Status::kOk;
  uint32_t midr = 0;
#if defined(__arm__) || defined(__aarch64__)
  ARN_TRY(ReadStrongestCpu("", &midr));
#endif
  cpuinfo_know(midr);
  return Status::kOk;
}

bool HasByteDots() {
#if HWY_ARCH_X86
  return (hwy::SupportedTargets() & HWY_AVX3_DL) != 0;
#elif HWY_ARCH_ARM_A64
  return KnowCpu() == Status::kOk && cpuinfo_has_arm_neon_dot();
#else
  return false;
#endif
}

}  // namespace arn::cpu
