#include "kernels/cpu/cpu_features.h"

#include <arn_cpuinfo.h>
#include <cpuinfo.h>

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

}  // namespace arn::cpu
