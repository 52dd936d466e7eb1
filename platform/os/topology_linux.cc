#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/os/topology.h"

namespace arn {
namespace {

static_assert(CpuMask::kMaxCpus >= CPU_SETSIZE);

}  // namespace

uint32_t ThreadId() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

bool GetThreadCpus(CpuMask* out) { return GetThreadCpus(0, out); }

bool GetThreadCpus(uint32_t thread_id, CpuMask* out) {
  *out = CpuMask();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(static_cast<pid_t>(thread_id), sizeof set, &set) != 0) return false;
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

}  // namespace arn
