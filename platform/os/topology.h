// Which CPUs are worth using.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

// A set of CPUs by number.
class CpuMask {
 public:
  static constexpr uint32_t kMaxCpus = 1024;
  void Add(uint32_t cpu) { bits_[cpu / 64] |= uint64_t{1} << cpu % 64; }
  bool Has(uint32_t cpu) const { return (bits_[cpu / 64] >> cpu % 64 & 1) != 0; }
  uint32_t count() const;
  friend bool operator==(const CpuMask&, const CpuMask&) = default;

 private:
  uint64_t bits_[kMaxCpus / 64] = {};
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
Topology ReadTopology();

// ReadTopology().performance.count(), at least 1.
uint32_t PerformanceCpuCount();

// The CPUs that the calling thread may run on. Threads that it starts inherit them. False when the
// system refuses.
bool GetThreadCpus(CpuMask* out);
bool SetThreadCpus(const CpuMask& cpus);

}  // namespace arn
