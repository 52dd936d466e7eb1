// The threads of a backend: a thin skin over Team that runs lambdas, and keeps them to CPUs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/os/team.h"
#include "platform/os/topology.h"

namespace arn::cpu {

class Threads {
 public:
  // cpus: what all of them stay on; null: the system places them. False when the system gives no
  // threads. Allocates.
  bool Start(uint32_t n_threads, const CpuMask* cpus) {
    if (cpus != nullptr) {
      cpus_ = *cpus;
      keeps_to_cpus_ = true;
    }
    const Placed placed(*this);
    if (team_.Start(n_threads)) return true;
    team_.Stop();
    return false;
  }
  // What they may run on now; of the calling thread, when they are kept on CPUs, what it could
  // while it was last Placed.
  ThreadCpus ReadCpus() const {
    ThreadCpus out;
    CpuMask caller;
    if (keeps_to_cpus_) {
      out.Add(caller_cpus_);
    } else if (GetThreadCpus(&caller)) {
      out.Add(caller);
    }
    team_.ReadCpus(&out);
    return out;
  }
  // Whether the system keeps all of them where they were to stay.
  bool AreKept() const {
    const ThreadCpus now = ReadCpus();
    return !keeps_to_cpus_ || (now.are_alike && now.cpus == cpus_);
  }
  // As many of them from now on.
  void Use(uint32_t n_threads) { team_.Use(n_threads); }

  // While it lives the calling thread is on the threads' CPUs too: what is done between two shared
  // pieces of work is done at their speed.
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
  mutable CpuMask caller_cpus_;  // while it was last Placed, read back
};

}  // namespace arn::cpu
