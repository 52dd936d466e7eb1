// The threads of a backend: a thin skin over Team that runs lambdas, and keeps to the performance
// CPUs of a machine that has others too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/os/team.h"
#include "platform/os/topology.h"

namespace arn::cpu {

class Threads {
 public:
  // With no more threads than there are performance CPUs, and others
  // beside them, the threads stay on those. False when the system gives no threads. Allocates.
  bool Start(uint32_t n_threads) {
    const Topology topology = ReadTopology();
    if (topology.keeps(n_threads)) {
      cpus_ = topology.performance;
      keeps_to_cpus_ = true;
    }
    const Placed placed(*this);
    if (team_.Start(n_threads)) return true;
    team_.Stop();
    return false;
  }
  // As many of them from now on.
  void Use(uint32_t n_threads) { team_.Use(n_threads); }

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
  void Stop() { team_.Stop(); }
  uint32_t count() const { return team_.count(); }
  // What is read next: threads that have nothing to do ask for it (Team::SetAhead).
  void SetAhead(const std::byte* data, uint64_t bytes) const { team_.SetAhead(data, bytes); }

  // body(begin, end) over [0, n) in pieces of at most `tile` that begin at multiples of `tile`.
  template <typename Body>
  void ForTiles(size_t n, size_t tile, const Body& body) const {
    ForEach((n + tile - 1) / tile,
            [&](size_t, size_t i) { body(i * tile, (i + 1) * tile < n ? (i + 1) * tile : n); });
  }

  // body(thread, i) for each i of [0, n); thread < count() says whose scratch to use.
  template <typename Body>
  void ForEach(size_t n, const Body& body) const {
    team_.Run(
        n,
        [](void* context, uint32_t thread, size_t i) {
          (*static_cast<const Body*>(context))(thread, i);
        },
        const_cast<Body*>(&body));
  }

 private:
  // Sharing work changes nothing that a caller sees.
  mutable Team team_;
  bool keeps_to_cpus_ = false;
  CpuMask cpus_;
};

}  // namespace arn::cpu
