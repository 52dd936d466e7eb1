// Which CPUs are worth using, and which of them threads run on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

// A set of CPUs by number.
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

// Of the CPUs in `allowed` those whose capacity is at least half of the largest: the big and middle
// cores of a phone, all of a desktop. capacities[cpu] for cpu < CpuMask::kMaxCpus; 0 where none is
// known. Empty when `allowed` is.
CpuMask SelectPerformanceCpus(const CpuMask& allowed, const uint32_t* capacities);

// What this process may run on, and the best of it by the kernel's cpu_capacity.
struct Topology {
  CpuMask allowed;
  CpuMask performance;
  // Whether threads are kept from CPUs that the process may use.
  bool is_mixed() const { return !(allowed == performance); }
  // Whether so many threads stay on the performance CPUs: where there are others, and no more
  // threads than these.
  bool keeps(uint32_t n_threads) const { return is_mixed() && n_threads <= performance.count(); }
};
// `root`: before /sys (system_file.h).
Topology ReadTopology(const char* root = "");
// The same where it is known what the process may run on.
Topology ReadTopology(const char* root, const CpuMask& allowed);

// CPUs of one package that are alike.
struct CpuCluster {
  CpuMask cpus;
  int64_t package = 0;    // -1: not known
  uint32_t capacity = 0;  // as the kernel compares CPUs, the largest 1024; 0: not known
  uint32_t max_khz = 0;   // 0: not known
  bool is_performance = false;
};
inline constexpr uint32_t kMaxCpuClusters = 16;
// The clusters of topology.allowed, the largest capacity first, then the highest frequency, then
// by number. Returns how many there are. CPUs of more than kMaxCpuClusters kinds are in none.
uint32_t ReadCpuClusters(const char* root, const Topology& topology,
                         CpuCluster (&out)[kMaxCpuClusters]);

// ReadTopology().performance.count(), at least 1.
uint32_t PerformanceCpuCount();

// The CPUs that the calling thread may run on. Threads that it starts inherit them. False when the
// system refuses.
bool GetThreadCpus(CpuMask* out);
bool SetThreadCpus(const CpuMask& cpus);

// The calling thread's number in the system, never 0; and what another thread may run on.
uint32_t ThreadId();
bool GetThreadCpus(uint32_t thread_id, CpuMask* out);

// What threads may run on, read back from the system.
struct ThreadCpus {
  uint32_t n_threads = 0;  // of which it was read
  CpuMask cpus;            // of all of them
  bool are_alike = true;   // each of them may run on all of these
  void Add(const CpuMask& of_one) {
    if (n_threads > 0 && !(of_one == cpus)) are_alike = false;
    cpus.Add(of_one);
    ++n_threads;
  }
};

}  // namespace arn
