#include "platform/os/topology.h"

#include <bit>

namespace arn {

uint32_t CpuMask::count() const {
  int n = 0;
  for (const uint64_t word : bits_) n += std::popcount(word);
  return static_cast<uint32_t>(n);
}

CpuMask SelectPerformanceCpus(const CpuMask& allowed, const uint32_t* capacities) {
  uint32_t largest = 0;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (allowed.Has(cpu) && capacities[cpu] > largest) largest = capacities[cpu];
  }
  CpuMask out;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (allowed.Has(cpu) && uint64_t{capacities[cpu]} * 2 >= largest) out.Add(cpu);
  }
  return out;
}

uint32_t PerformanceCpuCount() {
  const uint32_t count = ReadTopology().performance.count();
  return count > 0 ? count : 1;
}

}  // namespace arn
