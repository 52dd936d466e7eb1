#include "platform/os/topology.h"

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "platform/os/system_file.h"

namespace arn {
namespace {

// Returns a CPU's number in [1, most] from a file, else 0.
uint32_t CpuNumber(const char* root, uint32_t cpu, const char* file, int64_t most) {
  char path[kMaxSystemPath];
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", cpu, file);
  int64_t value = 0;
  if (!ReadSystemNumber(root, path, &value) || value < 1 || value > most) return 0;
  return static_cast<uint32_t>(value);
}

// Returns the kernel's relative capacity of a CPU, or 0 if not given (most x86 machines).
uint32_t CpuCapacity(const char* root, uint32_t cpu) {
  return CpuNumber(root, cpu, "cpu_capacity", 65535);
}

uint32_t CpuMaxKhz(const char* root, uint32_t cpu) {
  return CpuNumber(root, cpu, "cpufreq/cpuinfo_max_freq", 100 * 1000 * 1000);
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
    own.max_khz = CpuMaxKhz(root, cpu);
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

Status ReadStrongestCpu(const char* root, uint32_t* out_midr) {
  *out_midr = 0;
  uint32_t best_capacity = 0, best_khz = 0;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    char path[kMaxSystemPath], text[32];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/regs/identification/midr_el1",
                  cpu);
    errno = 0;
    if (!ReadSystemText(root, path, text, sizeof text)) {
      if (errno == EMFILE || errno == ENFILE) return Status::kIo;
      if (errno == ENOMEM) return Status::kOutOfMemory;
      // An offline CPU has no registers; past the last CPU the file is missing.
      std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/online", cpu);
      int64_t is_online = 0;
      if (!ReadSystemNumber(root, path, &is_online)) break;
      continue;
    }
    uint64_t midr = 0;
    const char* end = text + std::strlen(text);
    const bool is_hex = text[0] == '0' && text[1] == 'x';
    if (!is_hex || std::from_chars(text + 2, end, midr, 16).ptr != end) continue;
    const uint32_t capacity = CpuCapacity(root, cpu), khz = CpuMaxKhz(root, cpu);
    if (*out_midr != 0 && std::pair(capacity, khz) <= std::pair(best_capacity, best_khz)) continue;
    *out_midr = static_cast<uint32_t>(midr);
    best_capacity = capacity;
    best_khz = khz;
  }
  return Status::kOk;
}

uint32_t PerformanceCpuCount() {
  const uint32_t count = ReadTopology().performance.count();
  return count > 0 ? count : 1;
}

}  // namespace arn
