#include "platform/os/thread_pool.h"

#include <sched.h>

#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn {
namespace {

// Spin time of an idle thread before it sleeps. Longer than the single-threaded part of a decode
// step, short enough to cost no battery between requests.
constexpr uint64_t kSpinNs = 25 * 1000;
// Spin time of the caller before it blocks on the last tasks. Blocking frees its CPU for the thread
// it waits for, in case that one was preempted.
constexpr uint64_t kAwaitNs = 15 * 1000;
// Polls per clock read.
constexpr uint32_t kLooks = 64;
// Prefetch limit per thread: about half of an L2 cache.
constexpr uint64_t kPrefetchBytes = 384 * 1024;
constexpr size_t kLineBytes = 64;
constexpr size_t kLinesAtOnce = 8;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

// Spins until `condition` is true, at most `ns`. Returns true if it became true.
template <typename Condition>
bool SpinUntil(uint64_t ns, const Condition& condition) {
  const uint64_t start = MonotonicNs();
  do {
    for (uint32_t i = 0; i < kLooks; ++i) {
      if (condition()) return true;
      Pause();
    }
  } while (MonotonicNs() - start < ns);
  return false;
}

}  // namespace

bool ThreadPool::Start(uint32_t n_threads) {
  in_use_.store(n_threads, std::memory_order_relaxed);
  for (uint32_t thread = 1; thread < n_threads; ++thread) {
    Worker& worker = workers_[n_workers_];
    worker.pool = this;
    worker.thread = thread;
    worker.id.store(0, std::memory_order_relaxed);
    if (pthread_create(&worker.handle, nullptr, WorkerMain, &worker) != 0) return false;
    ++n_workers_;
  }
  return true;
}

void ThreadPool::Stop() {
  pthread_mutex_lock(&mutex_);
  stops_.store(true);
  pthread_cond_broadcast(&wake_);
  pthread_mutex_unlock(&mutex_);
  for (; n_workers_ > 0; --n_workers_) pthread_join(workers_[n_workers_ - 1].handle, nullptr);
}

void ThreadPool::ReadCpus(ThreadCpus* out) const {
  for (uint32_t i = 0; i < n_workers_; ++i) {
    uint32_t id = 0;
    while ((id = workers_[i].id.load(std::memory_order_acquire)) == 0) sched_yield();
    CpuMask cpus;
    if (GetThreadCpus(id, &cpus)) out->Add(cpus);
  }
}

void ThreadPool::Use(uint32_t n_threads) {
  if (n_threads == count()) return;
  // Wakes threads that rejoin: they sleep without being counted in sleepers_.
  pthread_mutex_lock(&mutex_);
  in_use_.store(n_threads, std::memory_order_relaxed);
  pthread_cond_broadcast(&wake_);
  pthread_mutex_unlock(&mutex_);
}

void ThreadPool::Run(size_t n, Body body, void* context) {
  if (count() == 1 || n <= 1) {
    for (size_t i = 0; i < n; ++i) body(context, 0, i);
    return;
  }
  body_.store(body, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  n_.store(n, std::memory_order_relaxed);
  const uint32_t n_parts = Min(count(), kMaxParts);
  n_parts_.store(n_parts, std::memory_order_relaxed);
  unfinished_.store(n, std::memory_order_relaxed);
  const uint32_t run = runs_.load(std::memory_order_relaxed) + 1;
  for (uint32_t p = 0; p < n_parts; ++p) {
    const uint64_t tasks = n * (p + 1) / n_parts - n * p / n_parts;
    parts_[p].left.store(uint64_t{run} << 32 | tasks, std::memory_order_release);
  }
  // seq_cst with sleepers_: a thread going to sleep sees the new run, or is seen here and woken.
  // exchange(), because QEMU on x86 does not keep AArch64's stlr and a later ldar in order.
  runs_.exchange(run, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    pthread_mutex_lock(&mutex_);
    pthread_cond_broadcast(&wake_);
    pthread_mutex_unlock(&mutex_);
  }
  Work(0);
  AwaitLastTasks();
}

void ThreadPool::AwaitLastTasks() {
  auto all_done = [&] { return unfinished_.load(std::memory_order_seq_cst) == 0; };
  if (SpinUntil(kAwaitNs, all_done)) return;
  pthread_mutex_lock(&mutex_);
  // seq_cst with unfinished_: the thread that finishes the last task sees this flag, or its result
  // is seen here. exchange(): see Run().
  is_awaited_.exchange(true, std::memory_order_seq_cst);
  while (!all_done()) pthread_cond_wait(&finished_, &mutex_);
  is_awaited_.store(false, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex_);
}

bool ThreadPool::Claim(uint32_t part, size_t* task) {
  std::atomic<uint64_t>& left = parts_[part].left;
  uint64_t was = left.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(was) != 0) {
    if (!left.compare_exchange_weak(was, was - 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      continue;
    }
    const size_t n = n_.load(std::memory_order_relaxed);
    const uint32_t n_parts = n_parts_.load(std::memory_order_relaxed);
    *task = n * (part + 1) / n_parts - static_cast<uint32_t>(was);
    return true;
  }
  return false;
}

void ThreadPool::Work(uint32_t thread) {
  for (uint32_t i = 0; i < kMaxParts; ++i) {
    const uint32_t part = (thread + i) % kMaxParts;
    size_t task;
    while (Claim(part, &task)) {
      body_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed), thread, task);
      const bool is_last = unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1;
      if (is_last && is_awaited_.load(std::memory_order_seq_cst)) {
        pthread_mutex_lock(&mutex_);
        pthread_cond_signal(&finished_);
        pthread_mutex_unlock(&mutex_);
      }
    }
  }
}

void ThreadPool::SetPrefetch(const std::byte* data, uint64_t bytes) {
  prefetch_bytes_.store(0, std::memory_order_relaxed);
  prefetch_.store(data, std::memory_order_release);
  prefetch_bytes_.store(bytes, std::memory_order_release);
}

void ThreadPool::Prefetch(Worker* worker) {
  const uint64_t bytes = prefetch_bytes_.load(std::memory_order_acquire);
  const std::byte* data = prefetch_.load(std::memory_order_acquire);
  // The size may be of the data before.
  if (bytes == 0 || data == nullptr) return;
  const uint64_t n = count();
  const uint64_t begin = bytes * worker->thread / n;
  const uint64_t end = Min(bytes * (worker->thread + 1) / n, begin + kPrefetchBytes);
  if (worker->prefetched != data) {
    worker->prefetched = data;
    worker->prefetch_at = begin;
  }
  // A stale prefetch is harmless.
  while (worker->prefetch_at < end && !IsWanted(*worker)) {
    for (size_t i = 0; i < kLinesAtOnce; ++i, worker->prefetch_at += kLineBytes) {
      __builtin_prefetch(data + worker->prefetch_at, 0, 2);
    }
  }
}

void ThreadPool::Serve(Worker* worker) {
  while (!stops_.load(std::memory_order_relaxed)) {
    if (worker->thread < count()) {
      worker->seen = runs_.load(std::memory_order_acquire);
      Work(worker->thread);
      Prefetch(worker);
    }
    const bool goes_on = SpinUntil(
        kSpinNs, [&] { return IsWanted(*worker) || stops_.load(std::memory_order_relaxed); });
    if (!goes_on) Sleep(*worker);
  }
}

void ThreadPool::Sleep(const Worker& worker) {
  pthread_mutex_lock(&mutex_);
  while (!stops_.load()) {
    // Threads not in use are not counted, or every run would wake them.
    const bool counts = worker.thread < count();
    if (counts) sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const bool is_wanted = IsWanted(worker);
    if (!is_wanted) pthread_cond_wait(&wake_, &mutex_);
    if (counts) sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    if (is_wanted) break;
  }
  pthread_mutex_unlock(&mutex_);
}

void* ThreadPool::WorkerMain(void* worker) {
  auto* self = static_cast<Worker*>(worker);
  self->id.store(ThreadId(), std::memory_order_release);
  self->pool->Serve(self);
  return nullptr;
}

}  // namespace arn
