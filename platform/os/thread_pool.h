// ThreadPool: threads that claim tasks. The caller waits only for claimed tasks, so a
// preempted thread does not delay a run; a barrier after every step would.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "platform/os/topology.h"

namespace arn {

inline constexpr uint32_t kMaxThreads = 256;

class ThreadPool {
 public:
  // body(context, thread, i). thread < count(), or below the number of started threads if count()
  // has just become smaller.
  using Body = void (*)(void* context, uint32_t thread, size_t i);

  ThreadPool() = default;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Starts n_threads in [1, kMaxThreads], including the calling thread. The others inherit its CPU
  // affinity. Returns false if the system cannot create them; call Stop() in either case. Allocates
  // their stacks.
  bool Start(uint32_t n_threads);
  void Stop();
  // Sets the number of threads used from the next Run() on; at most as many as were started.
  void Use(uint32_t n_threads);
  uint32_t count() const { return in_use_.load(std::memory_order_relaxed); }
  // Adds the current CPU affinity of each started thread, excluding the calling one.
  void ReadCpus(ThreadCpus* out) const;

  // Calls body for each i of [0, n) on the available threads and returns when all calls have
  // returned. Thread t starts with the t-th part of the range. One Run() at a time.
  void Run(size_t n, Body body, void* context);

  // Sets the memory that the next Run() will read, in the order of its tasks. Idle threads prefetch
  // their part of it. Must stay readable until the next call.
  void SetPrefetch(const std::byte* data, uint64_t bytes);

 private:
  // Unclaimed tasks: run number and count. A claim decrements the count. A run cannot end before a
  // claimed task is done, so a claimer may read the fields of its run.
  struct alignas(64) Part {
    std::atomic<uint64_t> left{0};
  };
  static constexpr uint32_t kMaxParts = 16;

  struct Worker {
    ThreadPool* pool = nullptr;
    uint32_t thread = 0;
    std::atomic<uint32_t> id{0};            // thread id in the system, once running
    uint32_t seen = 0;                      // last run that it claimed tasks from
    const std::byte* prefetched = nullptr;  // memory being prefetched, ...
    uint64_t prefetch_at = 0;               // ... and the position in it
    pthread_t handle = {};
  };

  static void* WorkerMain(void* worker);
  void Serve(Worker* worker);
  void Work(uint32_t thread);
  bool Claim(uint32_t part, size_t* task);
  bool IsWanted(const Worker& worker) const {
    return worker.thread < count() && runs_.load(std::memory_order_seq_cst) != worker.seen;
  }
  void Prefetch(Worker* worker);
  void AwaitLastTasks();
  // Blocks until IsWanted() or stop.
  void Sleep(const Worker& worker);

  // Fields of the current run.
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<size_t> n_{0};
  std::atomic<uint32_t> n_parts_{1};
  Part parts_[kMaxParts];
  alignas(64) std::atomic<size_t> unfinished_{0};

  alignas(64) std::atomic<uint32_t> runs_{0};  // runs started
  std::atomic<uint32_t> in_use_{1};
  std::atomic<const std::byte*> prefetch_{nullptr};
  std::atomic<uint64_t> prefetch_bytes_{0};
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
