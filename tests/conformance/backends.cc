#include "backends.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "kernels/cpu/backend_cpu.h"
#include "kernels/reference/backend_reference.h"

namespace arn::conformance {

#if HWY_ARCH_X86
// The SIMD kernels are those of AVX3 on CPUs with VNNI too, but not all that they call.
static std::string NameOf(int64_t target) {
  return (target & HWY_AVX3_DL) != 0 ? "Vnni" : hwy::TargetName(target);
}
#endif

std::vector<BackendCase> AllBackends() {
  std::vector<BackendCase> cases = {{ReferenceBackend(), 0, 1, "Reference"},
                                    {CpuBackend(), 0, 1, "Cpu"},
                                    {CpuBackend(), 0, 3, "Cpu3Threads"}};
#if HWY_ARCH_X86
  const int64_t candidates[] = {HWY_SSE2, HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_AVX3 | HWY_AVX3_DL};
  const int64_t have = hwy::SupportedTargets();
  for (const int64_t target : candidates) {
    if ((have & target) != target) continue;
    cases.push_back({CpuBackend(), target, 1, "Cpu" + NameOf(target)});
  }
#endif
  return cases;
}

void BackendTest::SetUp() {
  if (GetParam().simd_target != 0) hwy::SetSupportedTargetsForTest(GetParam().simd_target);
}

void BackendTest::TearDown() { hwy::SetSupportedTargetsForTest(0); }

}  // namespace arn::conformance
