#include "platform/os/topology.h"

#include <bit>
#include <cstdio>

#include "platform/os/system_file.h"

namespace arn {
namespace {

// A number of [1, most] that a CPU's file holds, else 0.
uint32_t CpuNumber(const char* root, uint32_t cpu, const char* file, int64_t most) {
  char path[kMaxSystemPath];
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", cpu, file);
  int64_t value = 0;
  if (!ReadSystemNumber(root, path, &value) || value < 1 || value > most) return 0;
  return static_cast<uint32_t>(value);
}

// The kernel's relative capacity of a CPU, or 0 where it says none (most x86 machines).
uint32_t CpuCapacity(const char* root, uint32_t cpu) {
  return CpuNumber(root, cpu, "cpu_capacity", 65535);
}

int64_t CpuPackage(const char* root, uint32_t cpu) {
  char path[kMaxSystemPath];
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id",
                cpu);
  int64_t package = -1;
  return ReadSystemNumber(root, path, &package) && package >= 0 ? package : -1;
}

bool ComesBefore(const CpuCluster& a, const CpuCluster& b) {
  return a.capacity != b.capacity ? a.capacity > b.capacity : a.max_khz > b.max_khz;
}

}  // namespace

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

Topology ReadTopology(const char* root, const CpuMask& allowed) {
  Topology out;
  out.allowed = allowed;
  uint32_t capacities[CpuMask::kMaxCpus] = {};
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (out.allowed.Has(cpu)) capacities[cpu] = CpuCapacity(root, cpu);
  }
  out.performance = SelectPerformanceCpus(out.allowed, capacities);
  return out;
}

Topology ReadTopology(const char* root) {
  CpuMask allowed;
  if (!GetThreadCpus(&allowed)) return Topology();
  return ReadTopology(root, allowed);
}

uint32_t ReadCpuClusters(const char* root, const Topology& topology,
                         CpuCluster (&out)[kMaxCpuClusters]) {
  uint32_t n = 0;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (!topology.allowed.Has(cpu)) continue;
    CpuCluster own;
    own.package = CpuPackage(root, cpu);
    own.capacity = CpuCapacity(root, cpu);
    own.max_khz = CpuNumber(root, cpu, "cpufreq/cpuinfo_max_freq", 100 * 1000 * 1000);
    own.is_performance = topology.performance.Has(cpu);
    uint32_t at = 0;
    while (at < n && (out[at].package != own.package || out[at].capacity != own.capacity ||
                      out[at].max_khz != own.max_khz)) {
      ++at;
    }
    if (at == kMaxCpuClusters) continue;
    if (at == n) {
      while (at > 0 && ComesBefore(own, out[at - 1])) {
        out[at] = out[at - 1];
        --at;
      }
      out[at] = own;
      ++n;
    }
    out[at].cpus.Add(cpu);
  }
  return n;
}

uint32_t PerformanceCpuCount() {
  const uint32_t count = ReadTopology().performance.count();
  return count > 0 ? count : 1;
}

}  // namespace arn
