#include <cstdio>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "platform/os/topology.h"

namespace arn {
namespace {

static_assert(CpuMask::kMaxCpus >= CPU_SETSIZE);

// The kernel's relative capacity of a CPU (at most 1024), or 0 where it says none (most x86
// machines).
uint32_t CpuCapacity(uint32_t cpu) {
  char path[64];
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpu_capacity", cpu);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[16];
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  uint32_t value = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9' && value < 100000; ++i) {
    value = value * 10 + static_cast<uint32_t>(text[i] - '0');
  }
  return value;
}

}  // namespace

bool GetThreadCpus(CpuMask* out) {
  *out = CpuMask();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return false;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) out->Add(cpu);
  }
  return true;
}

bool SetThreadCpus(const CpuMask& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (cpus.Has(cpu)) CPU_SET(cpu, &set);
  }
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

Topology ReadTopology() {
  Topology out;
  if (!GetThreadCpus(&out.allowed)) return out;
  uint32_t capacities[CpuMask::kMaxCpus] = {};
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (out.allowed.Has(cpu)) capacities[cpu] = CpuCapacity(cpu);
  }
  out.performance = SelectPerformanceCpus(out.allowed, capacities);
  return out;
}

}  // namespace arn
