// The backend's threads: a thin wrapper of ThreadPool that runs lambdas and pins the threads to
// CPUs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/os/thread_pool.h"
#include "platform/os/topology.h"

namespace arn::cpu {

class Threads {
 public:
  // cpus: CPUs to pin all threads to; null: the system places them. Allocates.
  // Returns false if the system cannot create the threads.
  bool Start(uint32_t n_threads, const CpuMask* cpus) {
    if (cpus != nullptr) {
      cpus_ = *cpus;
      keeps_to_cpus_ = true;
    }
    const Placed placed(*this);
    if (pool_.Start(n_threads)) return true;
    pool_.Stop();
    return false;
  }
  // Returns the CPUs on which the threads may run now. If they are pinned, the calling thread's are
  // those of its last Placed.
  ThreadCpus ReadCpus() const {
    ThreadCpus out;
    CpuMask caller;
    if (keeps_to_cpus_) {
      out.Add(caller_cpus_);
    } else if (GetThreadCpus(&caller)) {
      out.Add(caller);
    }
    pool_.ReadCpus(&out);
    return out;
  }
  // True if the system still pins all threads to the CPUs passed to Start().
  bool AreKept() const {
    const ThreadCpus now = ReadCpus();
    return !keeps_to_cpus_ || (now.are_alike && now.cpus == cpus_);
  }
  // Uses this many of the threads from now on.
  void Use(uint32_t n_threads) { pool_.Use(n_threads); }

  // Pins the calling thread to the pool's CPUs for its lifetime, so that the serial work between
  // two parallel sections runs at the same speed.
  class Placed {
   public:
    explicit Placed(const Threads& threads) {
      if (!threads.keeps_to_cpus_ || !GetThreadCpus(&before_)) return;
      is_moved_ = !(before_ == threads.cpus_) && SetThreadCpus(threads.cpus_);
      threads.caller_cpus_ = before_;
      if (is_moved_) GetThreadCpus(&threads.caller_cpus_);
    }
    ~Placed() {
      if (is_moved_) SetThreadCpus(before_);
    }
    Placed(const Placed&) = delete;
    Placed& operator=(const Placed&) = delete;

   private:
    CpuMask before_;
    bool is_moved_ = false;
  };
  void Stop() { pool_.Stop(); }
  uint32_t count() const { return pool_.count(); }
  // Sets the range that idle threads prefetch (ThreadPool::SetPrefetch).
  void SetPrefetch(const std::byte* data, uint64_t bytes) const { pool_.SetPrefetch(data, bytes); }

  // Calls body(begin, end) over [0, n) in parallel. Tiles have at most `tile` elements and start at
  // multiples of `tile`.
  template <typename Body>
  void ForTiles(size_t n, size_t tile, const Body& body) const {
    ForEach((n + tile - 1) / tile,
            [&](size_t, size_t i) { body(i * tile, (i + 1) * tile < n ? (i + 1) * tile : n); });
  }

  // Calls body(thread, i) in parallel for each i of [0, n); thread < count() selects the scratch.
  template <typename Body>
  void ForEach(size_t n, const Body& body) const {
    pool_.Run(
        n,
        [](void* context, uint32_t thread, size_t i) {
          (*static_cast<const Body*>(context))(thread, i);
        },
        const_cast<Body*>(&body));
  }

 private:
  // Mutable: parallel execution has no effect visible to the caller.
  mutable ThreadPool pool_;
  bool keeps_to_cpus_ = false;
  CpuMask cpus_;
  mutable CpuMask caller_cpus_;  // as read back in the last Placed
};

}  // namespace arn::cpu
