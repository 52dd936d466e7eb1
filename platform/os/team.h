// Threads that share work by claiming pieces of it. Nobody is waited for but who holds a piece: a
// thread that the system does not run delays nothing, which with a barrier after every step it
// would.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "platform/os/topology.h"

namespace arn {

inline constexpr uint32_t kMaxThreads = 256;

class Team {
 public:
  // body(context, thread, i). thread < count(), or of those started, when count() has just become
  // smaller.
  using Body = void (*)(void* context, uint32_t thread, size_t i);

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // n_threads of [1, kMaxThreads], the calling one among them. The others inherit its CPUs. False
  // when the system gives no threads; Stop() is to be called either way. Allocates their stacks.
  bool Start(uint32_t n_threads);
  void Stop();
  // How many take part from the next Run() on; at most as many as were started.
  void Use(uint32_t n_threads);
  uint32_t count() const { return in_use_.load(std::memory_order_relaxed); }
  // Adds what each started thread may run on, as the system has it now; not the calling one.
  void ReadCpus(ThreadCpus* out) const;

  // Calls body once for each i of [0, n), on whatever threads there are, and returns when all calls
  // have returned. Thread t begins with the t-th part of them. One Run() at a time.
  void Run(size_t n, Body body, void* context);

  // What the next Run() will read, in the order of its pieces. Threads that have nothing to do ask
  // for their part of it. It stays readable until another is named.
  void SetAhead(const std::byte* data, uint64_t bytes);

 private:
  // Pieces that nobody has claimed yet: the number of the run, and how many there are. A claim
  // takes one away. The run cannot end before a claimed piece is done, so who has one may read the
  // fields of its run.
  struct alignas(64) Part {
    std::atomic<uint64_t> left{0};
  };
  static constexpr uint32_t kMaxParts = 16;

  struct Worker {
    Team* team = nullptr;
    uint32_t thread = 0;
    std::atomic<uint32_t> id{0};       // the system's, once it runs
    uint32_t seen = 0;                 // the last run that it looked for pieces of
    const std::byte* ahead = nullptr;  // what it has been asking for, ...
    uint64_t ahead_at = 0;             // and how far it is
    pthread_t handle = {};
  };

  static void* WorkerMain(void* worker);
  void Serve(Worker* worker);
  void Work(uint32_t thread);
  bool Claim(uint32_t part, size_t* piece);
  bool IsWanted(const Worker& worker) const {
    return worker.thread < count() && runs_.load(std::memory_order_seq_cst) != worker.seen;
  }
  void PrefetchAhead(Worker* worker);
  void AwaitLastPieces();
  // Until it is wanted or the team stops.
  void Sleep(const Worker& worker);

  // Of the run at work.
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<size_t> n_{0};
  std::atomic<uint32_t> n_parts_{1};
  Part parts_[kMaxParts];
  alignas(64) std::atomic<size_t> unfinished_{0};

  alignas(64) std::atomic<uint32_t> runs_{0};  // begun
  std::atomic<uint32_t> in_use_{1};
  std::atomic<const std::byte*> ahead_{nullptr};
  std::atomic<uint64_t> ahead_bytes_{0};
  std::atomic<bool> stops_{false};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> is_awaited_{false};  // the caller sleeps until unfinished_ is 0
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
  pthread_cond_t finished_ = PTHREAD_COND_INITIALIZER;
  Worker workers_[kMaxThreads];
  uint32_t n_workers_ = 0;
};

}  // namespace arn
