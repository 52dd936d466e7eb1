// CPU topology and thread affinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/status.h"

namespace arn {

// Set of CPU numbers.
class CpuMask {
 public:
  static constexpr uint32_t kMaxCpus = 1024;
  static constexpr uint32_t kWords = kMaxCpus / 64;
  void Add(uint32_t cpu) { bits_[cpu / 64] |= uint64_t{1} << cpu % 64; }
  void Add(const CpuMask& other) {
    for (uint32_t i = 0; i < kWords; ++i) bits_[i] |= other.bits_[i];
  }
  bool Has(uint32_t cpu) const { return (bits_[cpu / 64] >> cpu % 64 & 1) != 0; }
  bool IsWithin(const CpuMask& other) const {
    for (uint32_t i = 0; i < kWords; ++i) {
      if ((bits_[i] & ~other.bits_[i]) != 0) return false;
    }
    return true;
  }
  uint32_t count() const;
  // Bit b of word w is CPU 64 w + b.
  uint64_t word(uint32_t w) const { return bits_[w]; }
  static CpuMask Of(uint64_t first_word) {
    CpuMask mask;
    mask.bits_[0] = first_word;
    return mask;
  }
  friend bool operator==(const CpuMask&, const CpuMask&) = default;

 private:
  uint64_t bits_[kWords] = {};
};

// Returns the CPUs of `allowed` with at least half of the largest capacity: big and middle cores of
// a phone, all of a desktop. capacities[cpu] for cpu < CpuMask::kMaxCpus; 0 if unknown. Empty if
// `allowed` is.
CpuMask SelectPerformanceCpus(const CpuMask& allowed, const uint32_t* capacities);

// CPUs that this process may use, and the fastest of them by the kernel's cpu_capacity.
struct Topology {
  CpuMask allowed;
  CpuMask performance;
  // True if some allowed CPUs are not performance CPUs.
  bool is_mixed() const { return !(allowed == performance); }
  // True if n_threads stay on the performance CPUs: there are others too, and no more threads than
  // performance CPUs.
  bool keeps(uint32_t n_threads) const { return is_mixed() && n_threads <= performance.count(); }
};
// `root`: prepended to /sys (system_file.h).
Topology ReadTopology(const char* root = "");
// As above with a given set of allowed CPUs.
Topology ReadTopology(const char* root, const CpuMask& allowed);

// Identical CPUs of one package.
struct CpuCluster {
  CpuMask cpus;
  int64_t package = 0;    // -1: unknown
  uint32_t capacity = 0;  // relative to the largest CPU, 1024; 0: unknown
  uint32_t max_khz = 0;   // 0: unknown
  bool is_performance = false;
};
inline constexpr uint32_t kMaxCpuClusters = 16;
// Returns the number of clusters of topology.allowed, sorted by falling capacity, then falling
// frequency, then number. CPUs beyond kMaxCpuClusters clusters are omitted.
uint32_t ReadCpuClusters(const char* root, const Topology& topology,
                         CpuCluster (&out)[kMaxCpuClusters]);

// Returns ARM's MIDR_EL1 of the fastest CPU (by capacity, then frequency, then number); 0 if
// unknown. kIo or kOutOfMemory if the process has no descriptors or memory left, else kOk.
Status ReadStrongestCpu(const char* root, uint32_t* out_midr);

// Returns ReadTopology().performance.count(), at least 1.
uint32_t PerformanceCpuCount();

// CPU affinity of the calling thread, inherited by threads it starts. False if the system refuses.
bool GetThreadCpus(CpuMask* out);
bool SetThreadCpus(const CpuMask& cpus);

// Returns the calling thread's system id, never 0; and the affinity of another thread.
uint32_t ThreadId();
bool GetThreadCpus(uint32_t thread_id, CpuMask* out);

// CPU affinity of several threads, read back from the system.
struct ThreadCpus {
  uint32_t n_threads = 0;  // threads read
  CpuMask cpus;            // union of all threads
  bool are_alike = true;   // all threads have the same affinity
  void Add(const CpuMask& of_one) {
    if (n_threads > 0 && !(of_one == cpus)) are_alike = false;
    cpus.Add(of_one);
    ++n_threads;
  }
};

}  // namespace arn
