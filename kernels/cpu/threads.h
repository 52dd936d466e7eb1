// The thread pool: a thin skin over pthreadpool that runs lambdas and runs small work in place, and
// keeps to the performance CPUs of a machine that has others too.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

#include "platform/os/topology.h"

namespace arn::cpu {

class Threads {
 public:
  // One thread needs no pool. With no more threads than there are performance CPUs, and others
  // beside them, the threads stay on those. False when the system gives no threads. Allocates.
  bool Start(uint32_t n_threads) {
    n_threads_ = n_threads;
    const Topology topology = ReadTopology();
    if (topology.keeps(n_threads)) {
      cpus_ = topology.performance;
      keeps_to_cpus_ = true;
    }
    if (n_threads <= 1) return true;
    const Placed placed(*this);
    pool_ = pthreadpool_create(n_threads);
    return pool_ != nullptr;
  }
  // As many of them from now on.
  void Use(uint32_t n_threads) {
    if (n_threads == n_threads_) return;
    n_threads_ = n_threads;
    if (pool_ != nullptr) pthreadpool_set_threads_count(pool_, n_threads);
  }

  // While it lives the calling thread is on the threads' CPUs too: what is done between two shared
  // pieces of work is done at their speed.
  class Placed {
   public:
    explicit Placed(const Threads& threads) {
      is_moved_ = threads.keeps_to_cpus_ && GetThreadCpus(&before_) &&
                  !(before_ == threads.cpus_) && SetThreadCpus(threads.cpus_);
    }
    ~Placed() {
      if (is_moved_) SetThreadCpus(before_);
    }
    Placed(const Placed&) = delete;
    Placed& operator=(const Placed&) = delete;

   private:
    CpuMask before_;
    bool is_moved_;
  };
  void Stop() {
    if (pool_ != nullptr) pthreadpool_destroy(pool_);
    pool_ = nullptr;
  }
  uint32_t count() const { return n_threads_; }

  // body(begin, end) over [0, n) in pieces of at most `tile` that begin at multiples of `tile`.
  template <typename Body>
  void ForTiles(size_t n, size_t tile, const Body& body) const {
    if (n_threads_ == 1 || n <= tile) {
      for (size_t i = 0; i < n; i += tile) body(i, i + tile < n ? i + tile : n);
      return;
    }
    pthreadpool_parallelize_1d_tile_1d(
        pool_,
        [](void* context, size_t begin, size_t count) {
          (*static_cast<const Body*>(context))(begin, begin + count);
        },
        const_cast<Body*>(&body), n, tile, /*flags=*/0);
  }

  // body(thread, i) for each i of [0, n); thread < count() says whose scratch to use.
  template <typename Body>
  void ForEach(size_t n, const Body& body) const {
    if (n_threads_ == 1 || n <= 1) {
      for (size_t i = 0; i < n; ++i) body(0, i);
      return;
    }
    pthreadpool_parallelize_1d_with_thread(
        pool_,
        [](void* context, size_t thread, size_t i) {
          (*static_cast<const Body*>(context))(thread, i);
        },
        const_cast<Body*>(&body), n, /*flags=*/0);
  }

 private:
  pthreadpool_t pool_ = nullptr;
  uint32_t n_threads_ = 1;
  bool keeps_to_cpus_ = false;
  CpuMask cpus_;
};

}  // namespace arn::cpu
