#include "kernels/cpu/cpu_features.h"

#include <arn_cpuinfo.h>
#include <cpuinfo.h>

#include <atomic>

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

int64_t ChooseTargets() {
  static std::atomic<int64_t> known{0};
  // Tests that disable targets leave Highway uninitialised.
  if (known.load() == 0 || !hwy::GetChosenTarget().IsInitialized()) {
    const int64_t targets = hwy::SupportedTargets();
    hwy::GetChosenTarget().Update(targets);
    known.store(targets);
  }
  return known.load();
}

bool HasByteDots() {
#if HWY_ARCH_X86
  return (ChooseTargets() & HWY_AVX3_DL) != 0;
#elif HWY_ARCH_ARM_A64
  return KnowCpu() == Status::kOk && cpuinfo_has_arm_neon_dot();
#else
  return false;
#endif
}

}  // namespace arn::cpu
