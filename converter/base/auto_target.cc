#include "converter/base/auto_target.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace arn::convert {
namespace {

// Sorted, best first.
struct Candidate {
  const char* target;
  bool is_supported;
};

}  // namespace

const PackTarget* AutoTarget() {
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const Candidate candidates[] = {
      {"x86-avx512vnni", has_avx512 && __builtin_cpu_supports("avx512vnni")},
      {"x86-avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
  };
#elif defined(__aarch64__) && defined(__linux__)
  const Candidate candidates[] = {
      {"arm64-i8mm", (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0},
      {"arm64-dotprod", (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0},
      {"arm64-neon", true},
  };
#else
  const Candidate candidates[] = {{"portable", true}};
#endif
  for (const Candidate& candidate : candidates) {
    if (!candidate.is_supported) continue;
    if (const PackTarget* target = FindPackTarget(candidate.target)) return target;
  }
  return FindPackTarget("portable");
}

}  // namespace arn::convert
