#include "tools/serve/worker_queue.h"

#include <system_error>
#include <utility>

namespace arn::serve {

WorkerQueue::WorkerQueue(size_t n_threads, size_t capacity) : tasks_(capacity) {
  threads_.reserve(n_threads);
  try {
    for (size_t i = 0; i < n_threads; ++i) threads_.emplace_back([this] { Work(); });
  } catch (const std::exception&) {
    if (threads_.empty()) throw;
  }
}

bool WorkerQueue::Add(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_ending_ || n_tasks_ == tasks_.size()) return false;
    tasks_[(first_ + n_tasks_++) % tasks_.size()] = std::move(task);
  }
  came_.notify_one();
  return true;
}

void WorkerQueue::End() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  came_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerQueue::Work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      came_.wait(lock, [this] { return is_ending_ || n_tasks_ > 0; });
      if (n_tasks_ == 0) return;
      task = std::move(tasks_[first_]);
      first_ = (first_ + 1) % tasks_.size();
      --n_tasks_;
    }
    try {
      task();
    } catch (const std::exception&) {
      // A connection whose request had no memory: it is closed.
    }
  }
}

}  // namespace arn::serve
