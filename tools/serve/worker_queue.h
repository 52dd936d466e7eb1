// WorkerQueue: tasks for a fixed number of threads. Nothing of it fails once it is made.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace arn::serve {

class WorkerQueue {
 public:
  // Works with fewer threads if the system gives no more. Throws std::system_error if it gives
  // none.
  WorkerQueue(size_t n_threads, size_t capacity);
  ~WorkerQueue() { End(); }
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;

  // Returns false if the queue is full or ending. What a task throws is dropped.
  bool Add(std::function<void()> task);
  // Finishes what was added.
  void End();

  size_t n_threads() const { return threads_.size(); }

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::function<void()>> tasks_;  // a ring
  size_t first_ = 0, n_tasks_ = 0;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace arn::serve
