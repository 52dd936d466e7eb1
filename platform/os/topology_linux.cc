#include <cstdio>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "platform/os/topology.h"

namespace arn {
namespace {

// The kernel's relative capacity of a CPU (at most 1024), or 0 where it says none (most x86
// machines).
uint32_t CpuCapacity(int cpu) {
  char path[64];
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
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

uint32_t PerformanceCpuCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  uint32_t largest = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const uint32_t capacity = CpuCapacity(cpu);
    if (capacity > largest) largest = capacity;
  }
  uint32_t count = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set) && CpuCapacity(cpu) * 2 >= largest) ++count;
  }
  return count > 0 ? count : 1;
}

}  // namespace arn
